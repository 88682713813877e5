package browser_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	browser "github.com/deckhouse/system-s3/tests/page"
)

// update makes the pictures of the documentation anew: go test ./... -run Pictures -update.
var update = flag.Bool("update", false, "make the pictures in docs/images anew")

const mostBytes = 150_000 // of a picture in the repository

func TestPictures(t *testing.T) {
	cases := map[string]struct {
		cluster, path string
		look          browser.Look
	}{
		"status-page.png":         {"trouble", "", browser.Look{Width: 1280, Height: 1720}},
		"status-page-dark.png":    {"well", "", browser.Look{Width: 1280, Height: 1500, Dark: true}},
		"status-page-phone.png":   {"trouble", "", browser.Look{Width: 360, Height: 1500}},
		"status-page-buckets.png": {"many", "/?sort=share#buckets", browser.Look{Width: 1280, Height: 900}},
	}
	if *update {
		s, b := serve(t), open(t)
		for file, c := range cases {
			s.become(t, c.cluster)
			visit(t, b, s, c.path, c.look)
			var picture []byte
			require.NoError(t, b.Run(chromedp.CaptureScreenshot(&picture)))
			small, err := browser.Small(picture)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(root, "docs/images", file), small, 0o644))
		}
	}
	for file := range cases {
		found, err := os.Stat(filepath.Join(root, "docs/images", file))
		require.NoError(t, err, "go test ./... -run Pictures -update makes it")
		require.Less(t, found.Size(), int64(mostBytes), file)
	}
}
