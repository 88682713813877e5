# Runs in a Pod of another namespace: knocks at every port of Garage, the gateways and the controller. A line for each
# attempt: "refused" or "open", then what was tried.
import os
import socket
import ssl
import sys
import urllib.error
import urllib.request

LIMIT = 5
unverified = ssl.create_default_context()
unverified.check_hostname = False
unverified.verify_mode = ssl.CERT_NONE


def tell(refused, what):
    print("refused" if refused else "open", what, flush=True)


def closed(host, port):
    """Nothing listens there for anybody but the Pod itself."""
    try:
        socket.create_connection((host, port), LIMIT).close()
    except OSError:
        return True
    return False


def silent(host, port, said):
    """Whoever does not know the secret gets not a byte out of Garage's own protocol."""
    try:
        with socket.create_connection((host, port), LIMIT) as conn:
            conn.sendall(said)
            return not conn.recv(1)
    except OSError:
        return True


def forbidden(url, method, token):
    headers = {"Authorization": "Bearer " + token} if token else {}
    body = b"{}" if method in ("PUT", "POST") else None
    request = urllib.request.Request(url, method=method, headers=headers, data=body)
    try:
        urllib.request.urlopen(request, timeout=LIMIT, context=unverified).close()
    except urllib.error.HTTPError as error:
        return 400 <= error.code < 500
    except OSError:
        return True
    return False


with open("/var/run/secrets/system-s3/token") as file:
    own = file.read()
ADMIN = [
    ("GET", "/v2/GetClusterHealth"), ("GET", "/v2/ListKeys"), ("GET", "/v2/ListBuckets"), ("POST", "/v2/CreateKey"),
    ("GET", "/v2/GetKeyInfo?id=system-s3-internal&showSecretKey=true"), ("POST", "/v2/AllowBucketKey"), ("GET", "/metrics"),
    ("GET", "/health"), ("GET", "/v2/../metrics"), ("GET", "/gateway/v1/volume"), ("PUT", "/gateway/v1/revoked"),
    ("GET", "/gateway/v1/hold"), ("PUT", "/gateway/v1/hold"), ("DELETE", "/gateway/v1/hold"), ("GET", "/check?domain=x"),
]
for host in sys.argv[1:]:
    tell(closed(host, 3900), f"Garage's S3 at {host}:3900")
    tell(closed(host, 3902), f"Garage's web at {host}:3902")
    tell(closed(host, 3903), f"Garage's admin at {host}:3903")
    for said in (b"GET / HTTP/1.0\r\n\r\n", bytes(64), os.urandom(64)):
        tell(silent(host, 3901, said), f"Garage's RPC at {host}:3901")
    for method, path in ADMIN:
        for token in ("", "0" * 64, own):
            tell(forbidden(f"https://{host}:8444{path}", method, token), f"{method} {path} at {host}:8444")
    for path in ("/", "/d8-e2e-x-main/secret", "/v2/ListKeys", "/metrics"):
        tell(forbidden(f"https://{host}:8443{path}", "GET", ""), f"GET {path} at {host}:8443")
    for path in ("/metrics", "/", "/v2/ListKeys", "/gateway/v1/volume"):
        for token in ("", "0" * 64, own):
            tell(forbidden(f"https://{host}:8445{path}", "GET", token), f"GET {path} at {host}:8445")
