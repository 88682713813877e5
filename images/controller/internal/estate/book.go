package estate

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/names"
)

// parts is how many ConfigMaps the book is spread over: one holds at most 1 MiB, which is about 3 500 entries.
const parts = 16

// Book is the list in the cluster: ConfigMaps in the module's namespace that stay when the module leaves.
type Book struct {
	// Reader reads from the API itself.
	Reader client.Reader
	Writer client.Writer
}

// Read is all entries. One that cannot be read is an error: it may tell of data.
func (b *Book) Read(ctx context.Context) (map[types.UID]Entry, error) {
	found, err := b.list(ctx)
	if err != nil {
		return nil, err
	}
	entries := map[types.UID]Entry{}
	for _, part := range found {
		for uid, text := range part.Data {
			var e Entry
			if err := json.Unmarshal([]byte(text), &e); err != nil {
				return nil, fmt.Errorf("decode the entry %s of ConfigMap %s: %w", uid, part.Name, err)
			}
			e.UID = types.UID(uid)
			entries[e.UID] = e
		}
	}
	return entries, nil
}

// Put writes entries, in place of those with the same UID. All are written when it returns without an error; in a
// namespace that is gone or going, and the store with it, there is nothing to write down.
func (b *Book) Put(ctx context.Context, entries []Entry) error {
	return b.change(ctx, entries, func(data map[string]string, e Entry) error {
		text, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("encode an entry: %w", err)
		}
		data[string(e.UID)] = string(text)
		return nil
	})
}

// Remove takes entries out.
func (b *Book) Remove(ctx context.Context, entries []Entry) error {
	return b.change(ctx, entries, func(data map[string]string, e Entry) error {
		delete(data, string(e.UID))
		return nil
	})
}

func (b *Book) change(ctx context.Context, entries []Entry, do func(map[string]string, Entry) error) error {
	if len(entries) == 0 {
		return nil
	}
	present, err := b.list(ctx)
	if err != nil {
		return err
	}
	byPart := map[string][]Entry{}
	for _, e := range entries {
		byPart[partOf(e.UID)] = append(byPart[partOf(e.UID)], e)
	}
	for name, some := range byPart {
		part, exists := present[name]
		if !exists {
			part = newPart(name)
		}
		data, err := changed(part.Data, some, do)
		if err != nil {
			return err
		}
		if maps.Equal(data, part.Data) {
			continue
		}
		part.Data = data
		if err := b.write(ctx, &part, exists); err != nil {
			return err
		}
	}
	return nil
}

func newPart(name string) corev1.ConfigMap {
	return corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: names.Namespace, Name: name,
		Labels: map[string]string{names.ModuleLabel: names.Module, names.AppLabel: names.ReleasedApp},
	}}
}

// changed is the content of a part after the change of some entries.
func changed(before map[string]string, entries []Entry, do func(map[string]string, Entry) error) (map[string]string, error) {
	data := maps.Clone(before)
	if data == nil {
		data = map[string]string{}
	}
	for _, e := range entries {
		if err := do(data, e); err != nil {
			return nil, err
		}
	}
	return data, nil
}

func (b *Book) write(ctx context.Context, part *corev1.ConfigMap, exists bool) error {
	if exists {
		if err := b.Writer.Update(ctx, part); err != nil {
			return fmt.Errorf("write ConfigMap %s: %w", part.Name, err)
		}
		return nil
	}
	err := b.Writer.Create(ctx, part)
	if apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil // the namespace is gone or going, with the store in it
	}
	if err != nil {
		return fmt.Errorf("create ConfigMap %s: %w", part.Name, err)
	}
	return nil
}

func (b *Book) list(ctx context.Context) (map[string]corev1.ConfigMap, error) {
	var found corev1.ConfigMapList
	mine := client.MatchingLabels{names.AppLabel: names.ReleasedApp}
	if err := b.Reader.List(ctx, &found, client.InNamespace(names.Namespace), mine); err != nil {
		return nil, fmt.Errorf("list the ConfigMaps of released buckets: %w", err)
	}
	byName := make(map[string]corev1.ConfigMap, len(found.Items))
	for _, part := range found.Items {
		byName[part.Name] = part
	}
	return byName, nil
}

func partOf(uid types.UID) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(uid)) // never fails
	return names.ReleasedApp + "-" + strconv.Itoa(int(hash.Sum32()%parts))
}
