// Package witness looks on the disks for what the gate has proven: that every block of an object is on every replica. It
// asks Garage only which blocks an object consists of.
package witness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Garage is the admin API of a node.
type Garage struct {
	URL, Token string
	Client     *http.Client
}

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 4 << 20

var errNoObject = errors.New("the store knows no such object")

// Missing lists the blocks of the objects that are not below each of the data folders, by replica.
func Missing(ctx context.Context, g Garage, bucketID string, keys []string, folders map[string]string) ([]string, error) {
	var missing []string
	for _, key := range keys {
		blocks, err := g.blocks(ctx, bucketID, key)
		if err != nil {
			return nil, fmt.Errorf("inspect %s: %w", key, err)
		}
		for _, block := range blocks {
			for replica, folder := range folders {
				there, err := holds(folder, block)
				if err != nil {
					return nil, err
				}
				if !there {
					missing = append(missing, fmt.Sprintf("%s lacks block %.12s of %s", replica, block, key))
				}
			}
		}
	}
	slices.Sort(missing)
	return missing, nil
}

// holds tells whether the block is on the disk, plain or compressed.
func holds(folder, block string) (bool, error) {
	const plain, compressed = "", ".zst"
	for _, ending := range []string{plain, compressed} {
		_, err := os.Stat(filepath.Join(folder, block[:2], block[2:4], block+ending))
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return false, fmt.Errorf("look for a block: %w", err)
		}
	}
	return false, nil
}

// blocks are the hashes of the blocks of the newest version of an object; none when it is kept in the metadata.
func (g Garage) blocks(ctx context.Context, bucketID, key string) ([]string, error) {
	query := url.Values{"bucketId": {bucketID}, "key": {key}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, g.URL+"/v2/InspectObject?"+query.Encode(), http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+g.Token)
	response, err := g.Client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("HTTP %d", response.StatusCode)
	}
	var answer struct {
		Versions []version `json:"versions"`
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&answer); err != nil {
		return nil, fmt.Errorf("decode the answer: %w", err)
	}
	return newest(answer.Versions)
}

type version struct {
	Timestamp    string `json:"timestamp"` // RFC 3339
	Uploading    bool   `json:"uploading"`
	Aborted      bool   `json:"aborted"`
	DeleteMarker bool   `json:"deleteMarker"`
	Inline       bool   `json:"inline"`
	Blocks       []struct {
		Hash string `json:"hash"`
	} `json:"blocks"`
}

// newest picks the version that clients see.
func newest(versions []version) ([]string, error) {
	done := slices.DeleteFunc(slices.Clone(versions), func(v version) bool { return v.Uploading || v.Aborted })
	if len(done) == 0 {
		return nil, errNoObject
	}
	seen := slices.MaxFunc(done, func(a, b version) int { return strings.Compare(a.Timestamp, b.Timestamp) })
	if seen.DeleteMarker {
		return nil, errNoObject
	}
	hashes := make([]string, 0, len(seen.Blocks))
	for _, block := range seen.Blocks {
		hashes = append(hashes, block.Hash)
	}
	if len(hashes) == 0 && !seen.Inline {
		return nil, errors.New("an object that is not kept in the metadata has no blocks")
	}
	return hashes, nil
}
