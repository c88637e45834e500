# The service, or with another command the worker: docker run everthread worker
FROM python:3.12-slim AS build
WORKDIR /build
COPY requirements/run.txt requirements/run.txt
RUN python -m venv /opt/everthread \
 && /opt/everthread/bin/pip install --no-cache-dir --require-hashes --requirement requirements/run.txt
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN /opt/everthread/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.12-slim
RUN useradd --system --uid 10001 --home-dir /data --create-home everthread
COPY --from=build /opt/everthread /opt/everthread
ENV PATH=/opt/everthread/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    EVERTHREAD_DATABASE=sqlite:////data/et.db \
    EVERTHREAD_MODELS_DIR=/data/models \
    EVERTHREAD_HOST=0.0.0.0 \
    EVERTHREAD_LOG_FORMAT=json \
    EVERTHREAD_LOG_LEVEL=info
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 8123
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8123/readyz', timeout=2)"]
ENTRYPOINT ["everthread"]
CMD ["serve"]
