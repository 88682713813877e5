package browser_test

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	browser "github.com/deckhouse/system-s3/tests/page"
)

//go:embed probe.js
var probe string

const root = "../.."

// server is the real handler of the page over clusters in memory.
type server struct {
	address string
	in      io.WriteCloser
	out     *bufio.Scanner
	process *os.Process
}

// binary is built once, by the first test that needs it.
var binary = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "page")
	if err != nil {
		return "", err
	}
	file := filepath.Join(folder, "serve")
	build := exec.Command("go", "build", "-o", file, "./images/controller/internal/page/pagetest/serve")
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, output)
	}
	return file, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if file, err := binary(); err == nil {
		_ = os.RemoveAll(filepath.Dir(file))
	}
	os.Exit(code)
}

func serve(t *testing.T) *server {
	t.Helper()
	file, err := binary()
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), file)
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	require.NoError(t, err)
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	t.Cleanup(func() { _ = in.Close(); _ = command.Wait() })
	s := &server{in: in, out: bufio.NewScanner(out), process: command.Process}
	require.True(t, s.out.Scan(), "it prints its address")
	s.address = s.out.Text()
	return s
}

// become makes the server show another cluster.
func (s *server) become(t *testing.T, cluster string) {
	t.Helper()
	_, err := io.WriteString(s.in, cluster+"\n")
	require.NoError(t, err)
	require.True(t, s.out.Scan())
	require.Equal(t, cluster, s.out.Text())
}

func open(t *testing.T) *browser.Browser {
	t.Helper()
	require.FileExists(t, browser.Chromium, "`make tools` installs it")
	b, leave, err := browser.Open(t.Context())
	require.NoError(t, err)
	t.Cleanup(leave)
	// In every document, and outside of its policy, as an extension of the browser would be.
	require.NoError(t, b.Run(chromedp.ActionFunc(addProbe)))
	return b
}

// visit opens a path of the page as somebody who may see it.
func visit(t *testing.T, b *browser.Browser, s *server, path string, look browser.Look) {
	t.Helper()
	require.NoError(t, b.Run(browser.As(look), chromedp.Navigate(browser.Signed(s.address, "viewer")+path), chromedp.WaitReady("#main")))
}

func ask[T any](t *testing.T, b *browser.Browser, expression string) T {
	t.Helper()
	var answer T
	require.NoError(t, b.Run(chromedp.Evaluate(expression, &answer)), expression)
	return answer
}
