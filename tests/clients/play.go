package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
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
)

// troupe plays on a stage.
type troupe struct {
	*stage.Stage

	images  images
	options options
	past    time.Duration
}

// play runs all clients and returns what came of them.
func play(ctx context.Context, s *stage.Stage, o options) ([]matrix.Row, error) {
	dir, err := os.MkdirTemp("", "system-s3-clients-")
	if err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	t := &troupe{Stage: s, images: images{stage: s}, options: o}
	if err := t.images.build(ctx, dir); err != nil {
		return nil, err
	}
	if err := t.order(ctx); err != nil {
		return nil, err
	}
	if err := t.seed(ctx); err != nil {
		return nil, err
	}
	return t.all(ctx)
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
	if err := t.Bucket(ctx, key, size); err != nil {
		return err
	}
	return t.AwaitBucket(ctx, key, storeLimit)
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
	c, err := t.consumer(ctx, one, prefix)
	if err != nil {
		return nil, err
	}
	if err := c.ServiceAccount(ctx, t.Admin); err != nil {
		return nil, err
	}
	if err := c.Allow(ctx, t.Admin, names.ReadSubresource, names.WriteSubresource); err != nil {
		return nil, err
	}
	if err := t.Start(ctx, c.Pod()); err != nil {
		return nil, err
	}
	ended := t.AwaitEnd(ctx, c.Key(), podLimit)
	log, err := t.Logs(ctx, c.Key(), corev1.PodLogOptions{})
	if err != nil {
		return nil, err
	}
	if ended != nil {
		const tail = 1500
		ended = fmt.Errorf("%w: %s", ended, log[max(0, len(log)-tail):])
	}
	return matrix.Parse(log), ended
}

func (t *troupe) consumer(ctx context.Context, one roster.Client, prefix string) (consumer.Consumer, error) {
	reference, err := t.images.reference(ctx, one.Image)
	if err != nil {
		return consumer.Consumer{}, err
	}
	var words []string
	if one.Word != "" {
		words = append(words, one.Word)
	}
	words = append(words, prefix, strconv.Itoa(t.options.large), strconv.Itoa(listed), strconv.Itoa(t.options.many),
		strconv.Itoa(int(t.past.Seconds())))
	return consumer.Consumer{Name: one.Name, Namespace: namespace, Bucket: bucket, Image: reference, Args: words}, nil
}
