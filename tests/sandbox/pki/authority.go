// Package pki is the certificate authority of the sandbox's Kubernetes. What it
// issues is written once and found again by later runs.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	validity     = 10 * 365 * 24 * time.Hour
	backdate     = time.Hour // for clocks that are set back after the start
	serialBits   = 127
	private      = 0o600
	public       = 0o644
	typeCert     = "CERTIFICATE"
	typePrivate  = "EC PRIVATE KEY"
	typePublic   = "PUBLIC KEY"
	caName       = "ca"
	caCommonName = "system-s3-sandbox"
)

var errPEM = errors.New("not a PEM file of the expected kind")

// Authority issues certificates into a folder.
type Authority struct {
	folder string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
}

// Identity is whom a certificate is for.
type Identity struct {
	// File is the name of the files, without ".crt" and ".key".
	File string
	// Name is the common name: the user in Kubernetes.
	Name string
	// Group is the organisation: the user's group in Kubernetes; may be empty.
	Group string
	// Hosts are the names and addresses it serves on; none for clients.
	Hosts []string
}

// Open returns the authority of the folder, making it when there is none.
func Open(folder string) (*Authority, error) {
	a := &Authority{folder: folder}
	if a.load() == nil {
		return a, nil
	}

	key, err := newKey()
	if err != nil {
		return nil, err
	}

	template, err := newTemplate(caCommonName, "")
	if err != nil {
		return nil, err
	}

	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature

	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make the authority: %w", err)
	}

	if err := a.save(caName, der, key); err != nil {
		return nil, err
	}

	return a, a.load()
}

// Cert is the path of a certificate, Key of its key.
func (a *Authority) Cert(file string) string { return a.folder + "/" + file + ".crt" }

// Key is the path of the private key that belongs to Cert.
func (a *Authority) Key(file string) string { return a.folder + "/" + file + ".key" }

// CA is the path of the authority's own certificate.
func (a *Authority) CA() string { return a.Cert(caName) }

// CAKey is the path of the authority's own key.
func (a *Authority) CAKey() string { return a.Key(caName) }

// Issue writes a certificate and its key unless they are there.
func (a *Authority) Issue(id Identity) error {
	if exists(a.Cert(id.File)) && exists(a.Key(id.File)) {
		return nil
	}

	key, err := newKey()
	if err != nil {
		return err
	}

	template, err := newTemplate(id.Name, id.Group)
	if err != nil {
		return err
	}

	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}

	for _, host := range id.Hosts {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}

		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}

	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return fmt.Errorf("issue %s: %w", id.File, err)
	}

	return a.save(id.File, der, key)
}

// SigningPair writes a bare key pair, <file>.key and <file>.pub, unless it is
// there, and returns both paths. ServiceAccount tokens are signed with it.
func (a *Authority) SigningPair(file string) (string, string, error) {
	keyPath, pubPath := a.Key(file), a.folder+"/"+file+".pub"
	if exists(keyPath) && exists(pubPath) {
		return keyPath, pubPath, nil
	}

	key, err := newKey()
	if err != nil {
		return "", "", err
	}

	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return "", "", fmt.Errorf("encode the public key %s: %w", file, err)
	}

	if err := write(pubPath, typePublic, der); err != nil {
		return "", "", err
	}

	return keyPath, pubPath, a.saveKey(file, key)
}

func (a *Authority) load() error {
	certDER, err := read(a.CA(), typeCert)
	if err != nil {
		return err
	}

	keyDER, err := read(a.CAKey(), typePrivate)
	if err != nil {
		return err
	}

	if a.cert, err = x509.ParseCertificate(certDER); err != nil {
		return fmt.Errorf("parse the authority's certificate: %w", err)
	}

	if a.key, err = x509.ParseECPrivateKey(keyDER); err != nil {
		return fmt.Errorf("parse the authority's key: %w", err)
	}

	return nil
}

func (a *Authority) save(file string, der []byte, key *ecdsa.PrivateKey) error {
	if err := write(a.Cert(file), typeCert, der); err != nil {
		return err
	}

	return a.saveKey(file, key)
}

func (a *Authority) saveKey(file string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode the key %s: %w", file, err)
	}

	return write(a.Key(file), typePrivate, der)
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}

	return key, nil
}

func newTemplate(name, group string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}

	subject := pkix.Name{CommonName: name}
	if group != "" {
		subject.Organization = []string{group}
	}

	now := time.Now()

	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    now.Add(-backdate),
		NotAfter:     now.Add(validity),
	}, nil
}

func read(path, kind string) ([]byte, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("read a PEM file: %w", err)
	}

	block, _ := pem.Decode(data)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("read %s: %w", path, errPEM)
	}

	return block.Bytes, nil
}

// readFile reads a file of the authority's.
func readFile(path string) ([]byte, error) {
	return fs.ReadFile(os.DirFS(filepath.Dir(path)), filepath.Base(path))
}

// write replaces the file at once, so that a kill leaves no half of it.
func write(path, kind string, der []byte) error {
	mode := fs.FileMode(public)
	if kind == typePrivate {
		mode = private
	}

	data := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(path+".new", data, mode); err != nil {
		return fmt.Errorf("write a PEM file: %w", err)
	}

	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write a PEM file: %w", err)
	}

	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)

	return err == nil
}
