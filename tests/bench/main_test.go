package bench

import (
	"fmt"
	"os"
	"testing"
)

// memory is where a store has no disk to wait for: its share is the smaller and the doors' the larger.
const memory = "/dev/shm"

func TestMain(m *testing.M) {
	if _, ours := os.LookupEnv(oursVariable); ours {
		fmt.Fprintln(os.Stderr, serveSTS(os.Args[1]))
		os.Exit(1)
	}
	if _, given := os.LookupEnv("TMPDIR"); !given {
		if info, err := os.Stat(memory); err == nil && info.IsDir() {
			_ = os.Setenv("TMPDIR", memory) // else the disk will do
		}
	}
	os.Exit(m.Run())
}

// sayf tells a figure to whoever runs the benchmark.
func sayf(format string, args ...any) { fmt.Fprintf(os.Stdout, format, args...) }
