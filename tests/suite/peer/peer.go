// Package peer runs versitygw's integration suite, which is written against any S3 endpoint, through the test's front.
package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"sync"
	"time"

	"github.com/versity/versitygw/tests/integration"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/tests/suite/front"
	"github.com/deckhouse/system-s3/tests/suite/verdict"
)

// Options of a run.
type Options struct {
	Only     *regexp.Regexp // nil: all
	Parallel int
	// Ready, if any, is waited for before each test.
	Ready func(ctx context.Context) error
	// Told, if any, gets each test as it ends.
	Told func(name string, took time.Duration, said error)
}

// Names is every test there is.
func Names() []string {
	var all []string
	for name := range integration.GetIntTests() {
		all = append(all, name)
	}
	return all
}

// Run runs what the table does not leave out, against the front, and returns what each test said.
func Run(ctx context.Context, f *front.Front, table verdict.Table, o Options) (map[string]error, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open the front's port: %w", err)
	}
	server := &http.Server{Handler: f, ReadHeaderTimeout: time.Minute, MaxHeaderBytes: 1 << 20}
	go server.Serve(listener) //nolint:errcheck // it ends by Close below
	defer server.Close()      //nolint:errcheck // nothing is lost with it
	// The machine's own ways into the world are none of the suite's, which ends the process for this one.
	if err := os.Unsetenv("AWS_CA_BUNDLE"); err != nil {
		return nil, fmt.Errorf("forget the machine's CA bundle: %w", err)
	}
	conf := integration.NewS3Conf(
		integration.WithAccess(front.RootID), integration.WithSecret(front.RootSecret), integration.WithRegion(names.Region),
		integration.WithEndpoint("http://"+listener.Addr().String()),
		integration.WithPartSize(5<<20), integration.WithConcurrency(1),
	)
	quiet, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("open the way to nowhere: %w", err)
	}
	// The suite prints as it goes, in colours; what it returns says the same.
	loud := os.Stdout
	os.Stdout = quiet
	defer func() { os.Stdout = loud }()
	results, err := run(ctx, conf, table, o)
	if err != nil {
		return results, fmt.Errorf("run the suite to its end: %w", err)
	}
	again(ctx, conf, results, o)
	return results, nil
}

// again runs one by one what ran out of the suite's own time, 30 seconds a request, which is not made for so many tests
// at once on a small machine. What is too slow alone stays so.
func again(ctx context.Context, conf *integration.S3Conf, results map[string]error, o Options) {
	tests := integration.GetIntTests()
	for name, said := range results {
		if said == nil || !late.MatchString(said.Error()) || ctx.Err() != nil {
			continue
		}
		if o.ready(ctx) != nil {
			return
		}
		begun := time.Now()
		results[name] = one(tests[name], conf)
		if o.Told != nil {
			o.Told(name+", alone", time.Since(begun), results[name])
		}
	}
}

var late = regexp.MustCompile(`context deadline exceeded|Client\.Timeout exceeded|api error SlowDown`)

func run(ctx context.Context, conf *integration.S3Conf, table verdict.Table, o Options) (map[string]error, error) {
	var (
		mu      sync.Mutex
		group   sync.WaitGroup
		results = map[string]error{}
		places  = make(chan struct{}, o.Parallel)
	)
	for name, test := range integration.GetIntTests() {
		if _, out := table.LeftOut(name); out || o.Only != nil && !o.Only.MatchString(name) {
			continue
		}
		places <- struct{}{}
		if err := o.ready(ctx); err != nil {
			group.Wait()
			return results, err
		}
		group.Go(func() {
			defer func() { <-places }()
			begun := time.Now()
			err := one(test, conf)
			mu.Lock()
			defer mu.Unlock()
			results[name] = err
			if o.Told != nil {
				o.Told(name, time.Since(begun), err)
			}
		})
	}
	group.Wait()
	return results, nil
}

// ready is the end of the run too.
func (o Options) ready(ctx context.Context) error {
	if o.Ready == nil || ctx.Err() != nil {
		return ctx.Err() //nolint:wrapcheck // whoever ended it knows
	}
	return o.Ready(ctx)
}

// one runs a test. The suite's own checks stumble over answers that they do not expect.
func one(test integration.IntTest, conf *integration.S3Conf) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%w: %v", errPanic, cause)
		}
	}()
	return test(conf)
}

var errPanic = errors.New("the test itself panicked")
