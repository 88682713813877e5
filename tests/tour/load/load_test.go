package load

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/garage/garagetest"
	"github.com/deckhouse/system-s3/lib/names"
)

const bucket = "account"

// turns of a worker are enough for every kind of operation to have come, but uploads in parts, which are rare.
const turns = 50

// garage is a store of one node and a way to it of which the load knows nothing.
type garage struct {
	options s3.Options
	behind  *s3.Client
}

func start(t *testing.T) garage {
	t.Helper()
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, bucket)
	options := s3.Options{
		BaseEndpoint: aws.String(cluster.S3URL()), Region: names.GarageRegion, UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(cluster.KeyID, cluster.KeySecret, ""),
	}
	return garage{options: options, behind: s3.New(options)}
}

// worked is a load that has done something below the prefix and rests.
func (g garage) worked(t *testing.T, prefix string, way http.RoundTripper) *Load {
	t.Helper()
	options := g.options
	if way != nil {
		options.HTTPClient = &http.Client{Transport: way}
	}
	l := New(Options{S3: options, Bucket: bucket, Prefix: prefix + "/", Seed: 7, Workers: 2, Pause: time.Millisecond, Keys: 20})
	l.Begin("work")
	for _, w := range l.workers {
		w.since = time.Now()
		for range turns {
			w.turn(t.Context())
		}
		w.upload(t.Context(), w.pick())
	}
	return l
}

func (g garage) put(t *testing.T, key string, body []byte) {
	t.Helper()
	_, err := g.behind.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(bucket), Key: &key, Body: bytes.NewReader(body)})
	require.NoError(t, err)
}

func (g garage) remove(t *testing.T, key string) {
	t.Helper()
	_, err := g.behind.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: aws.String(bucket), Key: &key})
	require.NoError(t, err)
}

// such is a key of which the ledger says so.
func (l *Load) such(t *testing.T, is func(entry) bool) (string, entry) {
	t.Helper()
	for _, key := range l.ledger.keys() {
		if e := l.ledger.read(key); is(e) {
			return key, e
		}
	}
	require.FailNow(t, "no key is as the test needs it")
	return "", entry{}
}

func present(e entry) bool     { return e.settled != absent && !e.doubted }
func deleted(e entry) bool     { return e.settled == absent && !e.doubted && len(e.sizes) > 0 }
func overwritten(e entry) bool { return present(e) && e.settled > 1 }
func inParts(e entry) bool     { return present(e) && e.sizes[e.settled-1] > partSize }

func TestInjectedLossesAreFound(t *testing.T) {
	g := start(t)
	cases := map[string]struct {
		reason string
		inject func(*testing.T, *Load) string // returns the key
		kind   Kind
	}{
		"nothing": {reason: "a clean run has no findings", inject: func(*testing.T, *Load) string { return "" }},
		"an object is gone": {reason: "an acknowledged write is lost", kind: Lost, inject: func(t *testing.T, l *Load) string {
			key, _ := l.such(t, present)
			g.remove(t, key)
			return key
		}},
		"an object in parts is gone": {reason: "it was acknowledged as a whole", kind: Lost, inject: func(t *testing.T, l *Load) string {
			key, _ := l.such(t, inParts)
			g.remove(t, key)
			return key
		}},
		"an older version is there": {reason: "the newest write is lost", kind: Lost, inject: func(t *testing.T, l *Load) string {
			key, e := l.such(t, overwritten)
			g.put(t, key, content(l.options.Seed, key, e.settled-1, e.sizes[e.settled-2]))
			return key
		}},
		"one byte differs": {reason: "the length is right, the byte is not", kind: Wrong, inject: func(t *testing.T, l *Load) string {
			key, e := l.such(t, present)
			body := content(l.options.Seed, key, e.settled, e.sizes[e.settled-1])
			body[len(body)-1] ^= 1
			g.put(t, key, body)
			return key
		}},
		"it is cut off": {reason: "a prefix of the right bytes", kind: Wrong, inject: func(t *testing.T, l *Load) string {
			key, e := l.such(t, inParts)
			g.put(t, key, content(l.options.Seed, key, e.settled, e.sizes[e.settled-1])[:partSize])
			return key
		}},
		"another object's bytes": {reason: "right bytes under a wrong key", kind: Wrong, inject: func(t *testing.T, l *Load) string {
			key, e := l.such(t, present)
			g.put(t, key, content(l.options.Seed, key+"0", e.settled, e.sizes[e.settled-1]))
			return key
		}},
		"a deleted object is back": {reason: "its deletion was acknowledged", kind: Resurrected, inject: func(t *testing.T, l *Load) string {
			key, e := l.such(t, deleted)
			g.put(t, key, content(l.options.Seed, key, len(e.sizes), e.sizes[len(e.sizes)-1]))
			return key
		}},
		"an object that nobody wrote": {reason: "a listing must not show more than there is", kind: Wrong, inject: func(t *testing.T, l *Load) string {
			key := l.options.Prefix + "0/foreign"
			g.put(t, key, []byte("foreign"))
			return key
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := g.worked(t, strings.ReplaceAll(name, " ", "-"), nil)
			phase := l.Begin("check")
			require.Zero(t, phase.Failed, phase.Told())
			require.GreaterOrEqual(t, phase.Requests, 2*turns)
			l.patience = 2 * time.Second
			key := c.inject(t, l)
			findings, err := l.Check(t.Context())
			require.NoError(t, err)
			if c.kind == "" {
				require.Empty(t, findings, c.reason)
				return
			}
			require.Len(t, findings, 1, c.reason)
			require.Equal(t, c.kind, findings[0].Kind, "%s: %s", c.reason, findings[0])
			require.Equal(t, key, findings[0].Key)
			t.Log(findings[0])
			again, err := l.Check(t.Context())
			require.NoError(t, err)
			require.Empty(t, again, "told once")
		})
	}
}

// TestAListingThatLagsIsCounted: what a read does not confirm is no finding, what it does confirm is one.
func TestAListingThatLagsIsCounted(t *testing.T) {
	g := start(t)
	l := g.worked(t, "lagging", nil)
	l.Begin("lag")
	key, _ := l.such(t, deleted)
	listed, err := l.list(t.Context(), l.options.Prefix)
	require.NoError(t, err)
	require.Empty(t, l.deviations(l.options.Prefix, listed))
	listed[key] = true
	stale := l.deviations(l.options.Prefix, listed)
	require.Len(t, stale, 1)
	require.Equal(t, Resurrected, stale[0].Kind)

	w := l.workers[0]
	w.get(t.Context(), key)
	require.Empty(t, l.takeFindings(), "it is deleted all the same")
	g.put(t, key, content(l.options.Seed, key, 1, l.ledger.read(key).sizes[0]))
	w.get(t.Context(), key)
	require.Len(t, l.takeFindings(), 1)
}

// unreliable lets one in so many requests fail: before the store has them, or after it has done what they ask for.
type unreliable struct {
	before, after int
	count         int
}

var errCut = errors.New("the cable was cut")

// RoundTrip implements http.RoundTripper.
func (u *unreliable) RoundTrip(r *http.Request) (*http.Response, error) {
	u.count++
	if u.count%u.before == 0 {
		_, _ = io.Copy(io.Discard, body(r))
		return nil, errCut
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && u.after > 0 && u.count%u.after == 0 {
		return nil, errors.Join(errCut, response.Body.Close())
	}
	return response, err
}

func body(r *http.Request) io.Reader {
	if r.Body == nil {
		return http.NoBody
	}
	return r.Body
}

// TestUnknownOutcomesAreNoFindings: what the client was told nothing of may have worked or not.
func TestUnknownOutcomesAreNoFindings(t *testing.T) {
	g := start(t)
	l := New(Options{S3: g.options, Bucket: bucket, Prefix: "unknown/", Seed: 1, Workers: 1, Keys: 20})
	once := g.options
	once.Retryer, once.HTTPClient = aws.NopRetryer{}, &http.Client{Transport: &unreliable{before: 5, after: 7}}
	reliable := l.s3
	l.s3 = s3.New(once)
	for range 3 * turns {
		l.workers[0].turn(t.Context())
	}
	phase := l.Begin("check")
	require.Positive(t, phase.Failed)
	require.Equal(t, phase.Failed, sum(phase.Errors))
	var doubted int
	for _, key := range l.ledger.keys() {
		if l.ledger.read(key).doubted {
			doubted++
		}
	}
	require.Positive(t, doubted)
	l.s3 = reliable
	findings, err := l.Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, findings)
	t.Logf("%d requests, %d failed, %d keys with an unknown outcome: %s", phase.Requests, phase.Failed, doubted, phase.Told())
}

func sum(errors map[string]int) int {
	total := 0
	for _, n := range errors {
		total += n
	}
	return total
}

// TestRetriesAreCounted: the SDK bridges single failures, which are told all the same.
func TestRetriesAreCounted(t *testing.T) {
	g := start(t)
	l := g.worked(t, "retried", &unreliable{before: 30})
	phase := l.Begin("check")
	require.Zero(t, phase.Failed, phase.Told())
	require.Equal(t, (phase.Requests+phase.Retried)/30, phase.Retried)
	findings, err := l.Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, findings)
}

// TestWorkersRestWhileHeld also stops them in the middle of what they do.
func TestWorkersRestWhileHeld(t *testing.T) {
	g := start(t)
	l := New(Options{S3: g.options, Bucket: bucket, Prefix: "held/", Seed: 3, Workers: 4, Pause: time.Millisecond, Keys: 30})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l.Begin("first")
	l.Start(ctx)
	for range 3 {
		awaitRequests(ctx, t, l, turns)
		resume := l.Rest()
		findings, err := l.Check(ctx)
		require.NoError(t, err)
		require.Empty(t, findings)
		resume()
		phase := l.Begin("next")
		require.Less(t, phase.Stall, 10*time.Second)
	}
	l.Stop()
	findings, err := l.Check(ctx)
	require.NoError(t, err)
	require.Empty(t, findings)
	require.NotEmpty(t, l.Present())
	require.Greater(t, l.Keys(), len(l.Present()))
}

func awaitRequests(ctx context.Context, t *testing.T, l *Load, enough int) {
	t.Helper()
	for tick := time.NewTicker(time.Millisecond); ; {
		l.mu.Lock()
		seen := l.phase.Requests
		l.mu.Unlock()
		if seen >= enough {
			tick.Stop()
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			require.NoError(t, ctx.Err())
		}
	}
}

func TestEveryVersionHasItsOwnBytes(t *testing.T) {
	sizes := []int{10, 10, 10}
	for version := 1; version <= 3; version++ {
		require.Equal(t, version, recognise(7, "key", sizes, content(7, "key", version, 10)))
	}
	require.Zero(t, recognise(8, "key", sizes, content(7, "key", 1, 10)), "another seed")
	require.Zero(t, recognise(7, "yek", sizes, content(7, "key", 1, 10)), "another key")
	require.Zero(t, recognise(7, "key", sizes, content(7, "key", 1, 9)), "another length")
	require.True(t, slices.Equal(content(7, "key", 1, 10), content(7, "key", 1, 10)))
}

// TestDoubt: what an entry allows and what it does not.
func TestDoubt(t *testing.T) {
	l := newLedger()
	read := func(version int) *Finding {
		e := l.read("key")
		if version == absent {
			return e.judge(1, "key", found{})
		}
		return e.judge(1, "key", found{exists: true, body: content(1, "key", version, e.sizes[version-1])})
	}
	l.write("key", 100)
	require.Nil(t, read(absent), "not acknowledged")
	require.Nil(t, read(1), "sent")
	l.acknowledge("key")
	require.Equal(t, Lost, read(absent).Kind)
	l.write("key", 200)
	require.Nil(t, read(1))
	require.Nil(t, read(2))
	require.Equal(t, Lost, read(absent).Kind, "neither of the two")
	require.Equal(t, Lost, l.read("key").listed("key", false).Kind, "either of them is listed")
	l.refuse("key")
	require.Equal(t, Wrong, read(2).Kind, "refused")
	l.remove("key")
	require.Nil(t, read(absent))
	require.Nil(t, read(1))
	require.Nil(t, l.read("key").listed("key", true))
	require.Nil(t, l.read("key").listed("key", false))
	l.acknowledge("key")
	require.Equal(t, Resurrected, read(1).Kind)
	require.Equal(t, Resurrected, l.read("key").listed("key", true).Kind)
}
