package platform

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

//go:embed manifests
var manifests embed.FS

const (
	// fieldManager signs what the platform applies.
	fieldManager = "sandbox-platform"
	// tokenLife is the life of Deckhouse's token in seconds: longer than any sandbox lives.
	tokenLife = 10 * 365 * 24 * 60 * 60
	// qps and burst are enough for the largest test to never wait for the client.
	qps, burst = 100, 200
)

// clients speak to the cluster under one account.
type clients struct {
	typed  kubernetes.Interface
	plain  dynamic.Interface
	config *rest.Config
}

func newClients(kubeconfig string, adjust ...func(*rest.Config)) (clients, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return clients{}, fmt.Errorf("read kubeconfig: %w", err)
	}

	config.QPS, config.Burst = qps, burst
	for _, change := range adjust {
		change(config)
	}

	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return clients{}, fmt.Errorf("connect to the cluster: %w", err)
	}

	plain, err := dynamic.NewForConfig(config)
	if err != nil {
		return clients{}, fmt.Errorf("connect to the cluster: %w", err)
	}

	return clients{typed: typed, plain: plain, config: config}, nil
}

// installer is the account that the platform's own objects are written under: the one
// that installs Deckhouse, which no policy holds back.
const installer = "dhctl"

// install puts the platform's own objects into the cluster and writes the kubeconfig
// that Deckhouse works with.
func install(ctx context.Context, env Env) error {
	admin, err := newClients(env.Dir.Kubeconfig(), func(config *rest.Config) {
		config.Impersonate = rest.ImpersonationConfig{UserName: installer, Groups: []string{"system:masters"}}
	})
	if err != nil {
		return err
	}

	if err := applyManifests(ctx, admin, "base/*"); err != nil {
		return err
	}

	for _, module := range env.Options.Modules {
		if err := applyManifests(ctx, admin, "modules/"+module); err != nil {
			return err
		}
	}

	if err := protect(ctx, admin, env.Options.Protection); err != nil {
		return err
	}

	if err := awaitAPI(ctx, admin); err != nil {
		return err
	}

	return writeDeckhouseConfig(ctx, env, admin)
}

// protect puts up the policies for Deckhouse's objects, or takes them down.
func protect(ctx context.Context, admin clients, wanted bool) error {
	if wanted {
		return applyManifests(ctx, admin, "protection")
	}

	objects, err := readManifest("manifests/protection.yaml")
	if err != nil {
		return err
	}

	for _, object := range objects {
		err := target(admin, object).Delete(ctx, object.GetName(), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}

	return nil
}

// applyManifests applies the files of the pattern; a module without a file has no
// kinds of its own. Server-side apply makes it right whether the objects are new, the
// same or older.
func applyManifests(ctx context.Context, admin clients, pattern string) error {
	files, err := fs.Glob(manifests, "manifests/"+pattern+".yaml")
	if err != nil {
		return fmt.Errorf("list manifests: %w", err)
	}

	for _, file := range files {
		objects, err := readManifest(file)
		if err != nil {
			return err
		}

		for _, object := range objects {
			_, err := target(admin, object).Apply(
				ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
			if err != nil {
				return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
			}
		}
	}

	return nil
}

func readManifest(file string) ([]*unstructured.Unstructured, error) {
	reader, err := manifests.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	defer reader.Close() //nolint:errcheck // Only read.

	decoder := yaml.NewYAMLOrJSONDecoder(reader, 1<<12)

	var objects []*unstructured.Unstructured

	for {
		object := &unstructured.Unstructured{}

		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}

		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}

		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// target is where an object goes whose kind is named in the plural as English has it:
// true for all that the platform brings, and cheaper than asking the cluster.
func target(admin clients, object *unstructured.Unstructured) dynamic.ResourceInterface {
	kind := object.GroupVersionKind()
	resource := admin.plain.Resource(schema.GroupVersionResource{
		Group: kind.Group, Version: kind.Version, Resource: plural(kind.Kind),
	})

	if namespace := object.GetNamespace(); namespace != "" {
		return resource.Namespace(namespace)
	}

	return resource
}

func plural(kind string) string {
	name := strings.ToLower(kind)
	if stem, ends := strings.CutSuffix(name, "y"); ends {
		return stem + "ies"
	}

	return name + "s"
}

// awaitAPI waits until the apiserver serves the platform's kinds.
func awaitAPI(ctx context.Context, admin clients) error {
	return await(ctx, "the API of Module and ModuleConfig", func(ctx context.Context) bool {
		for _, resource := range []schema.GroupVersionResource{moduleResource, moduleConfigResource} {
			if _, err := admin.plain.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
				return false
			}
		}

		return true
	})
}

// writeDeckhouseConfig writes a kubeconfig with a token of Deckhouse's ServiceAccount:
// the very user that a Deckhouse Pod would be.
func writeDeckhouseConfig(ctx context.Context, env Env, admin clients) error {
	if usable(ctx, env.deckhouseConfig()) {
		return nil
	}

	seconds := int64(tokenLife)

	token, err := admin.typed.CoreV1().ServiceAccounts(systemNamespace).CreateToken(ctx, "deckhouse",
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}},
		metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("get a token for Deckhouse: %w", err)
	}

	config := clientcmdapi.NewConfig()
	config.Clusters["sandbox"] = &clientcmdapi.Cluster{
		Server: admin.config.Host, CertificateAuthorityData: admin.config.CAData,
		CertificateAuthority: admin.config.CAFile,
	}
	config.AuthInfos["deckhouse"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts["sandbox"] = &clientcmdapi.Context{Cluster: "sandbox", AuthInfo: "deckhouse", Namespace: systemNamespace}
	config.CurrentContext = "sandbox"

	if err := os.MkdirAll(path.Dir(env.deckhouseConfig()), privateDir); err != nil {
		return fmt.Errorf("write Deckhouse's kubeconfig: %w", err)
	}

	return wrap("write Deckhouse's kubeconfig", clientcmd.WriteToFile(*config, env.deckhouseConfig()))
}

// usable tells whether the kubeconfig of an earlier start still opens the cluster.
func usable(ctx context.Context, kubeconfig string) bool {
	if _, err := os.Stat(kubeconfig); err != nil {
		return false
	}

	deckhouse, err := newClients(kubeconfig)
	if err != nil {
		return false
	}

	ctx, cancel := context.WithTimeout(ctx, debugTimeout)
	defer cancel()

	_, err = deckhouse.typed.CoreV1().Namespaces().Get(ctx, systemNamespace, metav1.GetOptions{})

	return err == nil || !apierrors.IsUnauthorized(err)
}
