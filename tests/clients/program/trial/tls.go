package trial

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
)

// HTTPClient trusts the CA of AWS_CA_BUNDLE, for clients that do not read that variable by themselves.
func HTTPClient() (*http.Client, error) {
	transport, err := Transport()
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: transport}, nil
}

// Transport trusts the CA of AWS_CA_BUNDLE.
func Transport() (*http.Transport, error) {
	bundle, err := os.ReadFile(os.Getenv("AWS_CA_BUNDLE")) //nolint:gosec // the connection ConfigMap names the file
	if err != nil {
		return nil, fmt.Errorf("read the CA: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		return nil, errors.New("there is no certificate in AWS_CA_BUNDLE")
	}
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("the default transport is another")
	}
	transport = transport.Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return transport, nil
}
