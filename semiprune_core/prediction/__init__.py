"""Labels for new images from a finished run (``prediction.run``), and how unlike the pool they are; a net to take away
(``prediction.package``). Nothing is imported here: the decoders' processes load ``prediction.look`` and little else.
"""
