# SemiPrune Studio from this checkout: docker build -t semiprune-studio .
# The same commands as without a container: pip install, then semiprune serve.
FROM python:3.12-slim AS build
COPY . /source
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /source

FROM python:3.12-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir /wheels/*.whl && rm -r /wheels \
 && useradd --create-home --uid 1000 studio \
 && install -d -o studio -m 700 /data
USER studio
ENV SEMIPRUNE_HOME=/data
VOLUME /data
EXPOSE 8501
CMD ["semiprune", "serve", "--address", "0.0.0.0", "--port", "8501"]
