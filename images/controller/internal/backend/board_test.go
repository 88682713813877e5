package backend_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
)

// While the store goes over to another plane buckets stay as they are, and a connection to the plane that was left,
// posted by whoever has not heard of it, is not taken.
func TestTheStoreGoesOver(t *testing.T) {
	board := backend.NewBoard()
	of := func(plane string) backend.Store { return backend.Store{Connection: &backend.Connection{Plane: plane}} }
	board.Post(of("a"))
	board.Suspend()
	board.Post(of("a"))
	_, known := board.Read()
	assert.False(t, known, "suspended")

	board.Leave("a")
	board.Resume()
	_, known = board.Read()
	assert.False(t, known, "what was posted before is of plane a")
	board.Post(of("a"))
	_, known = board.Read()
	assert.False(t, known, "a late post")
	board.Post(of("b"))
	store, known := board.Read()
	assert.True(t, known)
	assert.Equal(t, "b", store.Connection.Plane)

	board.Leave("")
	board.Post(of("a"))
	store, _ = board.Read()
	assert.Equal(t, "a", store.Connection.Plane, "a later migration back")
}
