package revocation

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/names"
)

const (
	// maxStored leaves room in the 1 MiB that an object may have.
	maxStored = 900 << 10
	// maxDecoded bounds what a broken ConfigMap could blow up to.
	maxDecoded = 64 << 20
)

// errBroken is a ConfigMap that nobody of us has written.
var errBroken = errors.New("the ConfigMap " + names.LiveKeysConfigMap + " cannot be decoded")

// store is the ConfigMap in which all replicas write down who holds living keys. It outlives them: a restart or another
// leader forgets nothing.
type store struct {
	// reader asks the apiserver: a cache may be older than what another replica has just written.
	reader client.Reader
	writer client.Client
	now    func() time.Time
}

// read is all holdings of all replicas whose keys may still live.
func (s store) read(ctx context.Context) ([]Holding, error) {
	object, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	return s.decode(object)
}

func (s store) get(ctx context.Context) (*corev1.ConfigMap, error) {
	object := &corev1.ConfigMap{}
	object.Namespace, object.Name = names.Namespace, names.LiveKeysConfigMap
	err := s.reader.Get(ctx, client.ObjectKeyFromObject(object), object)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read ConfigMap %s: %w", names.LiveKeysConfigMap, err)
	}
	return object, nil
}

func (s store) decode(object *corev1.ConfigMap) ([]Holding, error) {
	data := object.BinaryData[names.LiveKeysKey]
	if len(data) == 0 {
		return nil, nil
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, errBroken
	}
	var holdings []Holding
	if json.NewDecoder(io.LimitReader(unzipped, maxDecoded)).Decode(&holdings) != nil {
		return nil, errBroken
	}
	return living(holdings, s.now()), nil
}

// add writes holdings down beside those of the other replicas. It tells how many found no room: those that end first.
func (s store) add(ctx context.Context, added []Holding) (dropped int, err error) {
	conflict := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
	err = retry.OnError(retry.DefaultBackoff, conflict, func() error {
		var err error
		dropped, err = s.tryAdd(ctx, added)
		return err
	})
	return dropped, err
}

func (s store) tryAdd(ctx context.Context, added []Holding) (int, error) {
	object, err := s.get(ctx)
	if err != nil {
		return 0, err
	}
	present, err := s.decode(object)
	if err != nil {
		present = nil // it is put right: nothing can be made of what it holds
	}
	data, dropped, err := encode(together(present, added))
	if err != nil {
		return 0, err
	}
	object.BinaryData = map[string][]byte{names.LiveKeysKey: data}
	object.Labels = map[string]string{names.HeritageLabel: names.Heritage, names.ModuleLabel: names.Module}
	if object.ResourceVersion == "" {
		err = s.writer.Create(ctx, object)
	} else {
		err = s.writer.Update(ctx, object)
	}
	if err != nil {
		return 0, fmt.Errorf("write ConfigMap %s: %w", names.LiveKeysConfigMap, err)
	}
	return dropped, nil
}

// together merges the holdings of the same holder; those that end last come first.
func together(lists ...[]Holding) []Holding {
	merged := map[holder]Holding{}
	for _, list := range lists {
		for _, h := range list {
			if other, ok := merged[h.holder()]; ok {
				h = merge(other, h)
			}
			merged[h.holder()] = h
		}
	}
	all := make([]Holding, 0, len(merged))
	for _, h := range merged {
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b Holding) int { return b.Until.Compare(a.Until) })
	return all
}

// encode gives up as many of the last as do not fit.
func encode(holdings []Holding) (data []byte, dropped int, err error) {
	const share = 10
	all := len(holdings)
	for {
		var buffer bytes.Buffer
		zipped := gzip.NewWriter(&buffer)
		if err := errors.Join(json.NewEncoder(zipped).Encode(holdings), zipped.Close()); err != nil {
			return nil, 0, fmt.Errorf("encode holders of keys: %w", err)
		}
		if buffer.Len() <= maxStored {
			return buffer.Bytes(), all - len(holdings), nil
		}
		holdings = holdings[:len(holdings)-len(holdings)/share-1]
	}
}
