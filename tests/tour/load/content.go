package load

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
)

// Sizes of objects in bytes. Garage keeps up to 3 KiB in its metadata and cuts the rest into blocks of 1 MiB; the parts
// of a multipart upload, except for the last, have at least 5 MiB.
const (
	inline   = 3 << 10
	block    = 1 << 20
	partSize = 5 << 20
)

// size of a new version: most objects are small, some are a block, a few are several.
func size(dice *rand.Rand) int {
	switch n := dice.IntN(100); {
	case n < 50:
		return 1 + dice.IntN(inline)
	case n < 90:
		return inline + dice.IntN(64<<10)
	default:
		return block + dice.IntN(block)
	}
}

// content is what a version of a key consists of: nobody has to keep it in order to check it.
func content(seed uint64, key string, version, size int) []byte {
	body := make([]byte, size)
	source := rand.NewChaCha8(sha256.Sum256(fmt.Appendf(nil, "%d %d %s", seed, version, key)))
	_, _ = source.Read(body) // never fails
	return body
}

// recognise tells which version of the key the bytes are; 0 when they are none.
func recognise(seed uint64, key string, sizes []int, body []byte) int {
	for version := len(sizes); version > 0; version-- {
		if sizes[version-1] == len(body) && bytes.Equal(body, content(seed, key, version, len(body))) {
			return version
		}
	}
	return 0
}
