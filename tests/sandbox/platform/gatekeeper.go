package platform

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// webhookName is the name of both webhook configurations' object.
	webhookName = "deckhouse-sandbox"
	// webhookSeconds bounds the apiserver's wait for an answer.
	webhookSeconds = 10
	readLimit      = 10 * time.Second
)

// serveGate listens, tells the apiserver where, and answers until the context ends.
// The registration stays when the process ends: without Deckhouse nobody changes a
// ModuleConfig, as on the platform. Open is closed when the apiserver asks us.
func serveGate(ctx context.Context, client kubernetes.Interface, gate Gate, open chan<- struct{}) error {
	cert, err := newServing(time.Now())
	if err != nil {
		return err
	}

	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for admission reviews: %w", err)
	}

	server := &http.Server{
		Handler: gate.Handler(), ReadHeaderTimeout: readLimit, ReadTimeout: readLimit,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert.pair}, MinVersion: tls.VersionTLS13},
	}

	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()

	failed := make(chan error, 1)

	go func() { failed <- server.ServeTLS(listener, "", "") }()

	if err := register(ctx, client, webhooks("https://"+listener.Addr().String(), cert.pem)); err != nil {
		return errors.Join(err, server.Close())
	}

	close(open)

	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("answer admission reviews: %w", err)
	}

	return nil
}

func webhooks(url string, ca []byte) *admissionv1.ValidatingWebhookConfiguration {
	write := []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete}

	hook := func(resource, path string, policy admissionv1.FailurePolicyType) admissionv1.ValidatingWebhook {
		address := url + path
		effects, seconds := admissionv1.SideEffectClassNone, int32(webhookSeconds)

		return admissionv1.ValidatingWebhook{
			Name:         resource + ".deckhouse-webhook.deckhouse.io",
			ClientConfig: admissionv1.WebhookClientConfig{URL: &address, CABundle: ca},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: write,
				Rule: admissionv1.Rule{
					APIGroups: []string{"deckhouse.io"}, APIVersions: []string{"*"}, Resources: []string{resource},
				},
			}},
			FailurePolicy: &policy, SideEffects: &effects, TimeoutSeconds: &seconds,
			AdmissionReviewVersions: []string{"v1"},
		}
	}

	return &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{
			Name: webhookName, Labels: map[string]string{"heritage": "deckhouse", "module": "deckhouse"},
		},
		Webhooks: []admissionv1.ValidatingWebhook{
			hook(moduleConfigResource.Resource, moduleConfigPath, admissionv1.Fail),
			hook(moduleResource.Resource, modulePath, admissionv1.Ignore),
		},
	}
}

func register(ctx context.Context, client kubernetes.Interface, wanted *admissionv1.ValidatingWebhookConfiguration) error {
	configs := client.AdmissionregistrationV1().ValidatingWebhookConfigurations()

	present, err := configs.Get(ctx, wanted.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = configs.Create(ctx, wanted, metav1.CreateOptions{})

		return wrap("register webhooks", err)
	}

	if err != nil {
		return fmt.Errorf("register webhooks: %w", err)
	}

	present.Webhooks = wanted.Webhooks
	_, err = configs.Update(ctx, present, metav1.UpdateOptions{})

	return wrap("register webhooks", err)
}
