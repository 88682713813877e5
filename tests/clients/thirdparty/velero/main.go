// Command velero talks to Velero's AWS plugin as Velero's server does: it starts the plugin as a process of its own and
// configures it with what a BackupStorageLocation says.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/deckhouse/system-s3/tests/clients/program/trial"
	hclog "github.com/hashicorp/go-hclog"
	hcplugin "github.com/hashicorp/go-plugin"
	"github.com/sirupsen/logrus"
	"github.com/vmware-tanzu/velero/pkg/plugin/framework"
	"github.com/vmware-tanzu/velero/pkg/plugin/framework/common"
)

const plugin = "/velero-plugin-for-aws"

// objectStore is what the plugin offers.
type objectStore interface {
	Init(config map[string]string) error
	PutObject(bucket, key string, body io.Reader) error
	GetObject(bucket, key string) (io.ReadCloser, error)
	ListObjects(bucket, prefix string) ([]string, error)
	DeleteObject(bucket, key string) error
	CreateSignedURL(bucket, key string, ttl time.Duration) (string, error)
}

type store struct {
	objectStore

	bucket string
}

func main() { trial.Main(open) }

func open(p trial.Parameters) (trial.Client, error) {
	log := logrus.New()
	log.Out = os.Stderr
	// It ends with the Pod.
	client := hcplugin.NewClient(&hcplugin.ClientConfig{
		HandshakeConfig:  framework.Handshake(),
		AllowedProtocols: []hcplugin.Protocol{hcplugin.ProtocolGRPC},
		Plugins: map[string]hcplugin.Plugin{
			common.PluginKindObjectStore.String(): framework.NewObjectStorePlugin(common.ClientLogger(log)),
		},
		Logger: hclog.New(&hclog.LoggerOptions{Output: os.Stderr, Level: hclog.Info}),
		Cmd:    exec.Command(plugin),
	})
	connection, err := client.Client()
	if err != nil {
		return trial.Client{}, fmt.Errorf("start the plugin: %w", err)
	}
	dispensed, err := connection.Dispense(common.PluginKindObjectStore.String())
	if err != nil {
		return trial.Client{}, fmt.Errorf("ask the plugin for its object store: %w", err)
	}
	dispenser, ok := dispensed.(common.ClientDispenser)
	if !ok {
		return trial.Client{}, fmt.Errorf("the plugin gave a %T", dispensed)
	}
	s := store{bucket: p.Bucket}
	if s.objectStore, ok = dispenser.ClientFor("velero.io/aws").(objectStore); !ok {
		return trial.Client{}, fmt.Errorf("the plugin's object store is another")
	}
	if err := s.Init(location(p)); err != nil {
		return trial.Client{}, fmt.Errorf("configure the plugin: %w", err)
	}
	return trial.Client{Put: s.put, Get: s.get, PutParts: s.put, List: s.count, Delete: s.remove, SignGet: s.signGet}, nil
}

// location is the config of the BackupStorageLocation. Everything else is in the environment.
func location(p trial.Parameters) map[string]string {
	return map[string]string{"bucket": p.Bucket, "region": os.Getenv("AWS_REGION"), "s3Url": os.Getenv("AWS_ENDPOINT_URL_S3")}
}

func (s store) put(_ context.Context, key string, body []byte) error {
	return s.PutObject(s.bucket, key, bytes.NewReader(body))
}

func (s store) get(_ context.Context, key string) ([]byte, error) {
	body, err := s.GetObject(s.bucket, key)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	return content, body.Close()
}

func (s store) count(_ context.Context, prefix string) (int, error) {
	keys, err := s.ListObjects(s.bucket, prefix)
	return len(keys), err
}

func (s store) remove(_ context.Context, prefix string) error {
	keys, err := s.ListObjects(s.bucket, prefix)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := s.DeleteObject(s.bucket, key); err != nil {
			return err
		}
	}
	return nil
}

func (s store) signGet(_ context.Context, key string) (string, error) {
	return s.CreateSignedURL(s.bucket, key, time.Minute)
}
