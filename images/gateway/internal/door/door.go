// Package door tells whether this replica may serve clients. After a change of the number of copies it may not until
// the controller has seen that all tables are equal: before, a replica would say of objects that exist that they do not.
// What was opened once stays so for the epoch, which is remembered on the volume.
package door

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/deckhouse/system-s3/lib/access"
)

const (
	// patience is how long a client waits for a door that is about to open.
	patience = 15 * time.Second
	// mostExpected bounds how long the door may be told to open soon without being told so again.
	mostExpected = 2 * time.Minute
	recordFile   = "opened"
	recordMode   = 0o600
)

// Config is who the replica is.
type Config struct {
	Dir    string // on the volume
	Epoch  int    // that the replica runs in; 0 and 1 know no doors
	Member bool   // it has a role in Garage; others never serve
	Now    func() time.Time
}

// Door is safe for concurrent use.
type Door struct {
	Config

	mu       sync.Mutex
	opened   chan struct{} // closed once the door is open
	expected time.Time     // until when it is about to open
}

// New is the door as the volume remembers it.
func New(c Config) (*Door, error) {
	d := &Door{Config: c, opened: make(chan struct{})}
	recorded, err := d.recorded()
	if err != nil {
		return nil, err
	}
	if c.Member && (c.Epoch <= 1 || recorded == c.Epoch) {
		close(d.opened)
	}
	return d, nil
}

func (d *Door) path() string { return filepath.Join(d.Dir, recordFile) }

// recorded is the epoch that was opened last, 0 when none was or when the record is no number: the controller, which
// knows better, will tell again.
func (d *Door) recorded() (int, error) {
	data, err := os.ReadFile(d.path())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read which epoch was opened: %w", err)
	}
	epoch, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0, nil //nolint:nilerr // as if there were none
	}
	return epoch, nil
}

// Open lets clients in, for good. It refuses an epoch that is not the replica's.
func (d *Door) Open(epoch int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.Member || epoch != d.Epoch {
		return fmt.Errorf("the replica runs in epoch %d and has a role: %t; epoch %d cannot be opened", d.Epoch, d.Member, epoch)
	}
	if d.isOpen() {
		return nil
	}
	if err := d.record(); err != nil {
		return err
	}
	close(d.opened)
	return nil
}

// record writes the epoch in one step.
func (d *Door) record() error {
	temporary := d.path() + ".new"
	if err := os.WriteFile(temporary, []byte(strconv.Itoa(d.Epoch)+"\n"), recordMode); err != nil {
		return fmt.Errorf("record that the epoch is open: %w", err)
	}
	if err := os.Rename(temporary, d.path()); err != nil {
		return fmt.Errorf("record that the epoch is open: %w", err)
	}
	return nil
}

// Expect makes clients come and wait: the door is about to open. It wears off.
func (d *Door) Expect(epoch int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.Member || epoch != d.Epoch {
		return fmt.Errorf("the replica runs in epoch %d and has a role: %t; epoch %d does not begin here", d.Epoch, d.Member, epoch)
	}
	d.expected = d.Now().Add(mostExpected)
	return nil
}

// Pass is nil once the door is open. While it is about to open a client waits for a while.
func (d *Door) Pass(ctx context.Context) error {
	if d.IsOpen() {
		return nil
	}
	if !d.Expected() {
		return access.ErrServiceUnavailable
	}
	wait := time.NewTimer(patience)
	defer wait.Stop()
	select {
	case <-d.opened:
		return nil
	case <-wait.C:
		return access.ErrServiceUnavailable
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// IsOpen tells whether clients are let in.
func (d *Door) IsOpen() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.isOpen()
}

func (d *Door) isOpen() bool {
	select {
	case <-d.opened:
		return true
	default:
		return false
	}
}

// Expected tells whether the door is about to open.
func (d *Door) Expected() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Now().Before(d.expected)
}
