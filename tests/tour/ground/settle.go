package ground

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/layout"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
	"github.com/deckhouse/system-s3/tests/demo/stage"
	"github.com/deckhouse/system-s3/tests/tour/witness"
)

// StorageReady is the condition of the Module that tells whether the store works.
const StorageReady = "StorageReady"

// Settle waits until every node is ready, every replica and the controller run, and the module says that all is well.
func (g *Ground) Settle(ctx context.Context) error {
	return g.Await(ctx, stage.Wish{What: "the store to be well", Limit: storeLimit, Look: func(ctx context.Context) (bool, string, error) {
		for _, look := range []func(context.Context) (string, error){g.nodesLack, g.replicasLack, g.controllerLacks, g.moduleLacks} {
			if lack, err := look(ctx); lack != "" || err != nil {
				return false, lack, err
			}
		}
		return true, "", nil
	}})
}

func (g *Ground) nodesLack(ctx context.Context) (string, error) {
	nodes := &corev1.NodeList{}
	if err := g.Admin.List(ctx, nodes); err != nil {
		return "", fmt.Errorf("list nodes: %w", err)
	}
	for _, node := range nodes.Items {
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
				return node.Name + " is not ready", nil
			}
		}
	}
	return "", nil
}

func (g *Ground) replicasLack(ctx context.Context) (string, error) {
	sets, err := g.sets(ctx)
	if err != nil {
		return "", err
	}
	wanted := 0
	for i := range sets {
		if sets[i].Spec.Replicas != nil {
			wanted += int(*sets[i].Spec.Replicas)
		}
	}
	newest, ready, err := g.Restarted(ctx)
	if wanted == 0 || newest < wanted {
		return fmt.Sprintf("of %d replicas %d are ready, %d with the newest template", wanted, ready, newest), err
	}
	return "", err
}

func (g *Ground) controllerLacks(ctx context.Context) (string, error) {
	pods, err := g.Pods(ctx, names.ControllerApp)
	for i := range pods {
		if !Ready(&pods[i]) {
			return pods[i].Name + " is not ready", err
		}
	}
	return "", err
}

func (g *Ground) moduleLacks(ctx context.Context) (string, error) {
	condition, err := g.Condition(ctx, StorageReady)
	if condition.Status != "True" || condition.Reason != plan.ReasonReady {
		return condition.String(), err
	}
	return "", err
}

// Prove waits for the proof of the gate that every replica holds all copies of what was acknowledged until now.
func (g *Ground) Prove(ctx context.Context) error {
	proof := layout.Proof{}
	return g.Await(ctx, stage.Wish{What: "the proof that every replica holds all copies", Limit: storeLimit, Look: func(ctx context.Context) (bool, string, error) {
		nodes, evidence, err := g.evidence(ctx)
		if err != nil {
			return false, "", err
		}
		gate := layout.Prove(proof, evidence)
		proof = gate.Proof
		for _, node := range nodes {
			if err := node.Ask(ctx, gate.Request); err != nil {
				proof = layout.Proof{}
				return false, "", err
			}
		}
		return gate.Open, gate.Message, nil
	}})
}

// evidence is what the replicas tell of themselves, asked as the controller asks.
func (g *Ground) evidence(ctx context.Context) ([]*garage.Client, layout.Evidence, error) {
	caller, token, err := g.admin(ctx)
	if err != nil {
		return nil, layout.Evidence{}, err
	}
	defer caller.CloseIdleConnections()
	pods, err := g.Pods(ctx, names.GarageApp)
	if err != nil {
		return nil, layout.Evidence{}, err
	}
	evidence := layout.Evidence{Now: time.Now()}
	nodes := make([]*garage.Client, 0, len(pods))
	for i := range pods {
		node := garage.New(adminURL(&pods[i]), token, caller)
		account, err := node.Account(ctx)
		if err != nil {
			account = layout.Account{Silence: err.Error()}
		}
		account.Name, account.Run = pods[i].Name, process(&pods[i])
		evidence.Accounts, nodes = append(evidence.Accounts, account), append(nodes, node)
		if msec, err := strconv.Atoi(pods[i].Annotations[names.RPCTimeoutAnnotation]); err == nil {
			evidence.Delay = max(evidence.Delay, 2*time.Duration(msec)*time.Millisecond) //nolint:mnd // Garage's own rule
		}
	}
	return nodes, evidence, nil
}

// Missing lists what the objects consist of and a replica's disk lacks. Nobody may write meanwhile.
func (g *Ground) Missing(ctx context.Context, keys []string) ([]string, error) {
	caller, token, err := g.admin(ctx)
	if err != nil {
		return nil, err
	}
	defer caller.CloseIdleConnections()
	bucket, _, err := g.ReadBucket(ctx, g.Bucket)
	if err != nil {
		return nil, err
	}
	pods, err := g.Pods(ctx, names.GarageApp)
	if err != nil {
		return nil, err
	}
	folders, asked := map[string]string{}, ""
	for i := range pods {
		path, err := VolumePath(ctx, g.Stage, "data-"+pods[i].Name)
		if err != nil {
			return nil, err
		}
		folders[pods[i].Name], asked = filepath.Join(path, "data"), adminURL(&pods[i])
	}
	return witness.Missing(ctx, witness.Garage{URL: asked, Token: token, Client: caller}, bucket.Status.BucketID, keys, folders)
}

// Equal waits until all replicas have as many entries in every table: what is kept in the metadata has no block that
// could be looked for on a disk. Nobody may write meanwhile; the last writes may still be on their way to one of them.
func (g *Ground) Equal(ctx context.Context) error {
	return g.Await(ctx, stage.Wish{What: "the replicas' tables to be equal", Limit: equalLimit, Look: func(ctx context.Context) (bool, string, error) {
		caller, token, err := g.admin(ctx)
		if err != nil {
			return false, "", err
		}
		defer caller.CloseIdleConnections()
		pods, err := g.Pods(ctx, names.GarageApp)
		if err != nil {
			return false, "", err
		}
		entries := map[string]map[int]string{} // by table and number, the replicas that have so many
		for i := range pods {
			statistics, err := garage.New(adminURL(&pods[i]), token, caller).GetNodeStatistics(ctx)
			if err != nil {
				return false, "", err
			}
			for _, table := range statistics.Tables {
				if entries[table.Name] == nil {
					entries[table.Name] = map[int]string{}
				}
				entries[table.Name][table.Items] += " " + pods[i].Name
			}
		}
		differ := differing(entries)
		return differ == "", differ, nil
	}})
}

func differing(entries map[string]map[int]string) string {
	var told []string
	for table, counts := range entries {
		if len(counts) > 1 {
			told = append(told, fmt.Sprintf("%s %v", table, counts))
		}
	}
	slices.Sort(told)
	return strings.Join(told, ", ")
}

func adminURL(pod *corev1.Pod) string {
	return "https://" + net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(names.GatewayAdminPort))
}

func process(pod *corev1.Pod) string {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == names.GarageContainer && status.State.Running != nil {
			return status.ContainerID
		}
	}
	return ""
}

// admin is a client for the replicas' admin ports and the token that they ask for.
func (g *Ground) admin(ctx context.Context) (*http.Client, string, error) {
	secrets := map[string]*corev1.Secret{names.GarageObject(plane): {}, names.TLSSecret: {}}
	for name, secret := range secrets {
		if err := g.Admin.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: name}, secret); err != nil {
			return nil, "", fmt.Errorf("read Secret %s: %w", name, err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(secrets[names.TLSSecret].Data[names.CAKey])
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12, ServerName: names.S3Host}}
	return &http.Client{Transport: transport, Timeout: answerLimit}, string(secrets[names.GarageObject(plane)].Data[names.AdminTokenKey]), nil
}

const (
	// answerLimit is how long a replica may take to tell how far it is.
	answerLimit = 20 * time.Second
	// equalLimit is how long the last writes may be on their way.
	equalLimit = time.Minute
)
