"""Small answers leave at once."""

import socket

from semiprune_core.server.listening import is_listening, send_at_once


def test_connections_of_a_listening_socket_send_at_once():
    with socket.socket() as listener:  # as Streamlit makes it, without naming the protocol
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        send_at_once()
        with socket.create_connection(listener.getsockname()) as caller:
            accepted, _ = listener.accept()
            with accepted:
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            port = listener.getsockname()[1]
            assert is_listening(port) and not is_listening(caller.getsockname()[1])
            assert not caller.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY), "only ours"
