package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
)

const (
	// What issue 5 asks for.
	wantedHalf  = time.Second
	wantedWorst = 3 * time.Second

	poll       = 10 * time.Millisecond
	readyLimit = 2 * time.Minute
)

var errTooSlow = errors.New("slower than wanted")

// creation makes SystemBuckets one after another and measures from the request to Ready=True.
func creation(ctx context.Context, g *ground, o options) error {
	took := make([]time.Duration, 0, o.count)
	for n := range o.count {
		name := fmt.Sprintf("new-%04d", n)
		begun := time.Now()
		if err := create(ctx, g, name); err != nil {
			return err
		}
		if err := awaitReady(ctx, g, name); err != nil {
			return err
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	half, worst := took[len(took)/2], took[len(took)*99/100] //nolint:mnd // the percentiles
	_, _ = fmt.Fprintf(os.Stdout, "creation to Ready, %d SystemBuckets: p50 %d ms, p99 %d ms, longest %d ms\n",
		len(took), half.Milliseconds(), worst.Milliseconds(), took[len(took)-1].Milliseconds())
	if err := deleteAll(ctx, g, "new-", o.count); err != nil {
		return err
	}
	if half > wantedHalf || worst > wantedWorst {
		return errTooSlow
	}
	return nil
}

func create(ctx context.Context, g *ground, name string) error {
	sb := &v1alpha1.SystemBucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.SystemBucketSpec{Size: resource.MustParse("1Mi")},
	}
	if err := client.IgnoreAlreadyExists(g.Admin.Create(ctx, sb)); err != nil {
		return fmt.Errorf("create SystemBucket %s: %w", name, err)
	}
	return nil
}

func awaitReady(ctx context.Context, g *ground, name string) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		var sb v1alpha1.SystemBucket
		if err := g.Admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &sb); err != nil {
			return fmt.Errorf("read SystemBucket %s: %w", name, err)
		}
		if meta.IsStatusConditionTrue(sb.Status.Conditions, v1alpha1.ConditionReady) && sb.Status.ObservedGeneration == sb.Generation {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for SystemBucket %s: %w", name, ctx.Err())
		}
	}
}

func deleteAll(ctx context.Context, g *ground, prefix string, count int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(connections)
	for n := range count {
		group.Go(func() error {
			sb := &v1alpha1.SystemBucket{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s%04d", prefix, n)}}
			return client.IgnoreNotFound(g.Admin.Delete(ctx, sb)) //nolint:wrapcheck // told below
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("delete SystemBuckets: %w", err)
	}
	return nil
}
