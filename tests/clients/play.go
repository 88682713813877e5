package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"golang.org/x/sync/errgroup"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/tests/clients/matrix"
	"github.com/deckhouse/system-s3/tests/clients/roster"
	"github.com/deckhouse/system-s3/tests/demo/consumer"
	"github.com/deckhouse/system-s3/tests/demo/stage"
)

const (
	namespace = "d8-clients"
	bucket    = "matrix"
	size      = "4Gi"
	seedName  = "seed"
	// listed is more than two pages of a listing.
	listed = 2500
	// longestLife of a key that is waited for.
	longestLife = 3 * time.Minute
	// margin is how long a client goes on after the end of its first key.
	margin = 5 * time.Second

	storeLimit = 5 * time.Minute
	podLimit   = 15 * time.Minute
	logLimit   = time.Minute
	// scratch is the size in bytes of a Pod's temporary folder; that of Barman holds two databases.
	scratch = 2 << 30
)

var errSilent = errors.New("its log is other")

// troupe plays on a stage.
type troupe struct {
	*stage.Stage

	images  images
	options options
	past    time.Duration
}

// play runs all clients and the examples of the page and returns what came of them.
func play(ctx context.Context, s *stage.Stage, o options) ([]matrix.Row, []matrix.Example, error) {
	dir, err := os.MkdirTemp("", "system-s3-clients-")
	if err != nil {
		return nil, nil, fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	t := &troupe{Stage: s, images: images{stage: s, workshop: workshop{source(s.Builds)}}, options: o}
	if err := t.images.build(ctx, dir); err != nil {
		return nil, nil, err
	}
	if err := t.order(ctx); err != nil {
		return nil, nil, err
	}
	if err := t.seed(ctx); err != nil {
		return nil, nil, err
	}
	examples, err := t.examples(ctx)
	if err != nil {
		return nil, nil, err
	}
	rows, err := t.all(ctx)
	return rows, examples, err
}

// order enables the module and makes the bucket.
func (t *troupe) order(ctx context.Context) error {
	if err := t.Configure(ctx, true, nil); err != nil {
		return err
	}
	if err := t.Namespace(ctx, namespace); err != nil {
		return err
	}
	key := client.ObjectKey{Namespace: namespace, Name: bucket}
	// A module that was only just enabled needs a moment to bring the type.
	made := stage.Wish{What: "SystemBucket " + key.String() + " to be taken", Limit: storeLimit, Look: func(ctx context.Context) (bool, string, error) {
		err := t.Bucket(ctx, key, size)
		return err == nil, "", err
	}}
	if err := t.Await(ctx, made); err != nil {
		return err
	}
	if err := t.AwaitBucket(ctx, key, storeLimit); err != nil {
		return err
	}
	return t.Await(ctx, stage.Wish{What: "every STS endpoint to issue keys of a short life", Limit: storeLimit, Look: t.shortLived})
}

// shortLived tells whether all replicas of the controller run with the sandbox's short life of keys: the platform takes
// a while to pass a changed one on.
func (t *troupe) shortLived(ctx context.Context) (bool, string, error) {
	controller := &appsv1.Deployment{}
	if err := t.Admin.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: names.ControllerApp}, controller); err != nil {
		return false, "", fmt.Errorf("read the controller's Deployment: %w", err)
	}
	for _, variable := range controller.Spec.Template.Spec.Containers[0].Env {
		if variable.Name != "KEY_LIFETIME_SECONDS" {
			continue
		}
		life, err := time.ParseDuration(variable.Value + "s")
		if err != nil {
			return false, "", fmt.Errorf("learn how long keys live: %w", err)
		}
		if life > longestLife {
			return false, "keys live for " + variable.Value + " s, too long to wait for their end: bin/sandbox up --key-lifetime 30s", nil
		}
	}
	status := controller.Status
	rolled := status.ObservedGeneration == controller.Generation && status.Replicas > 0 &&
		status.UpdatedReplicas == status.Replicas && status.AvailableReplicas == status.Replicas
	return rolled, fmt.Sprintf("%d of %d controllers are up to date", status.UpdatedReplicas, status.Replicas), nil
}

// seed stores what the clients list and delete, and learns how long a key lives.
func (t *troupe) seed(ctx context.Context) error {
	prefixes := make([]string, 0, len(t.options.clients))
	for _, one := range t.options.clients {
		prefixes = append(prefixes, one.Name+"/")
	}
	cells, err := t.perform(ctx, roster.Client{Name: seedName, Image: roster.Program, Word: seedName}, strings.Join(prefixes, ","))
	if err != nil {
		return fmt.Errorf("store objects for the clients: %w", err)
	}
	life, err := time.ParseDuration(cells["life"].Text)
	if err != nil {
		return fmt.Errorf("learn how long a key lives: %w", err)
	}
	if life > longestLife {
		return fmt.Errorf("keys live for %s, too long to wait for their end: bin/sandbox up --key-lifetime 30s", life.Round(time.Second))
	}
	t.past = life + margin
	t.Sayf("    keys live for %s; clients go on for %s", life.Round(time.Second), t.past.Round(time.Second))
	return nil
}

// all runs the clients, a few at once. A client's trouble is its row's, not the matrix's.
func (t *troupe) all(ctx context.Context) ([]matrix.Row, error) {
	rows := make([]matrix.Row, len(t.options.clients))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(t.options.parallel)
	for i, one := range t.options.clients {
		// Images are made one after another: builds at once would fight for the machine.
		_, err := t.images.reference(ctx, one.Image)
		if err != nil {
			rows[i] = matrix.Row{Client: one, Trouble: err}
			continue
		}
		group.Go(func() error {
			cells, err := t.perform(ctx, one, one.Name+"/")
			rows[i] = matrix.Row{Client: one, Cells: cells, Trouble: err}
			t.Sayf("    %s is done", one.Name)
			return ctx.Err()
		})
	}
	return rows, group.Wait()
}

// perform runs a client in its Pod and returns what it told.
func (t *troupe) perform(ctx context.Context, one roster.Client, prefix string) (map[string]matrix.Cell, error) {
	var words []string
	if one.Word != "" {
		words = append(words, one.Word)
	}
	words = append(words, prefix, strconv.Itoa(t.options.large), strconv.Itoa(listed), strconv.Itoa(t.options.many),
		strconv.Itoa(int(t.past.Seconds())))
	log, err := t.act(ctx, consumer.Consumer{Name: one.Name, Args: words}, one.Image, nil)
	return matrix.Parse(log), err
}

// examples runs those of the page whose clients are played, one after another: they are short.
func (t *troupe) examples(ctx context.Context) ([]matrix.Example, error) {
	played := map[roster.Kind]bool{}
	for _, one := range t.options.clients {
		played[one.Image] = true
	}
	var results []matrix.Example
	for _, one := range roster.Examples() {
		if !played[one.Image] {
			continue
		}
		log, err := t.act(ctx, consumer.Consumer{Name: one.Name}, one.Image, one.Command)
		if err == nil && !strings.Contains(log, one.Says) {
			err = fmt.Errorf("it does not say %q: %w", one.Says, errSilent)
		}
		results = append(results, matrix.Example{Language: one.Language, Trouble: err})
	}
	return results, ctx.Err()
}

// act runs a consumer in its Pod and returns its log. The error is that it did not come to a good end, with the end of
// the log.
func (t *troupe) act(ctx context.Context, c consumer.Consumer, kind roster.Kind, command []string) (string, error) {
	reference, err := t.images.reference(ctx, kind)
	if err != nil {
		return "", err
	}
	c.Namespace, c.Bucket, c.Image = namespace, bucket, reference
	if err := c.ServiceAccount(ctx, t.Admin); err != nil {
		return "", err
	}
	if err := c.Allow(ctx, t.Admin, names.ReadSubresource, names.WriteSubresource); err != nil {
		return "", err
	}
	pod := c.Pod()
	pod.Spec.Containers[0].Command = command
	for _, volume := range pod.Spec.Volumes {
		if volume.EmptyDir != nil {
			volume.EmptyDir.SizeLimit = resource.NewQuantity(scratch, resource.BinarySI)
		}
	}
	if err := t.Start(ctx, pod); err != nil {
		return "", err
	}
	ended := t.AwaitEnd(ctx, c.Key(), podLimit)
	log, err := t.log(ctx, c)
	if err != nil {
		return "", errors.Join(ended, err)
	}
	if ended != nil {
		const tail = 1500
		ended = fmt.Errorf("%w: %s", ended, log[max(0, len(log)-tail):])
	}
	return log, ended
}

// log of a consumer that has ended. A busy node may fail to give it at first.
func (t *troupe) log(ctx context.Context, c consumer.Consumer) (string, error) {
	var text string
	wish := stage.Wish{What: "the log of Pod " + c.Name, Limit: logLimit, Look: func(ctx context.Context) (bool, string, error) {
		var err error
		text, err = t.Logs(ctx, c.Key(), corev1.PodLogOptions{})
		return err == nil, "", err
	}}
	return text, t.Await(ctx, wish)
}
