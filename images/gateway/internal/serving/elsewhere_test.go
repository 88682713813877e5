package serving

import (
	"bytes"
	"context"
	"fmt"
	"io"
	formdata "mime/multipart"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
	"github.com/deckhouse/system-s3/lib/names"
)

// moving is a store that moves, with a gateway of where it was and one of where it will be.
type moving struct{ source, target *rig }

func newMoving(t *testing.T) *moving {
	t.Helper()
	m := &moving{}
	m.target = newRig(t, start(t), nil)
	m.source = newRig(t, start(t), m.sameSecrets)
	m.source.ca, m.source.ring = m.target.ca, m.target.ring
	return m
}

func start(t *testing.T) *garagetest.Cluster {
	t.Helper()
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, testBucket)
	return cluster
}

// sameSecrets makes a gateway take the keys of the target's ring and its CA.
func (m *moving) sameSecrets(c *Config) {
	c.RingFile, c.TLSDir = m.target.config.RingFile, m.target.config.TLSDir
}

// fence sets the fence of the source.
func (m *moving) fence(to string) {
	status, answer := m.source.push(http.MethodPut, "/gateway/v1/fence", m.source.cluster.AdminToken, fmt.Sprintf(`{"to":%q}`, to))
	require.Equal(m.source.t, http.StatusOK, status, answer)
}

func (m *moving) there() string { return "https://" + m.target.server.S3Address() }

// TestWhatIsForwardedIsAsIfItWasAskedThere runs what consumers do through a gateway that forwards.
func TestWhatIsForwardedIsAsIfItWasAskedThere(t *testing.T) {
	m := newMoving(t)
	m.fence(m.there())
	stories := map[string]func(*testing.T, *s3.Client, string){
		"objects": objects, "odd keys": oddKeys, "multipart": multipart, "presigned": presigned, "copies": copies,
		"lists and deletes": listsAndDeletes, "harmless questions": harmlessQuestions, "forms": forms,
	}
	for style, options := range map[string][]func(*s3.Options){"host": {}, "path": {pathStyle}} {
		for name, story := range stories {
			t.Run(style+"/"+name, func(t *testing.T) {
				story(t, m.source.s3(m.source.key(testBucket, access.ReadWrite), options...), strings.ReplaceAll(style+"/"+name+"/", " ", "-"))
			})
		}
	}
	here := m.target.s3(m.target.key(testBucket, access.ReadWrite))
	data := pattern(5 << 20)
	out := put(t, m.source.s3(m.source.key(testBucket, access.ReadWrite)), "//of/both%2F+ü", data)
	require.Equal(t, data, get(t, here, "//of/both%2F+ü"))
	require.Equal(t, out.ETag, put(t, here, "//of/both%2F+ü", data).ETag)
	requireCode(t, putting(otherBucket)(t.Context(), m.source.s3(m.source.key(testBucket, access.ReadWrite), noRetry)), "AccessDenied")
	eventually(t, "nothing is left running", func() bool { return m.target.server.gate.Running() == 0 && m.source.server.gate.Running() == 0 })
}

// forms uploads as browsers do.
func forms(t *testing.T, client *s3.Client, prefix string) {
	t.Helper()
	request, data := form(t, client, prefix+"form")
	response, err := client.Options().HTTPClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusNoContent, response.StatusCode)
	require.Equal(t, data, get(t, client, prefix+"form"))
}

// form is a signed form with a file.
func form(t *testing.T, client *s3.Client, key string) (*http.Request, []byte) {
	t.Helper()
	signed, err := s3.NewPresignClient(client).PresignPostObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(testBucket), Key: &key})
	require.NoError(t, err)
	var body bytes.Buffer
	fields := formdata.NewWriter(&body)
	for name, value := range signed.Values {
		require.NoError(t, fields.WriteField(name, value))
	}
	file, err := fields.CreateFormFile("file", "name")
	require.NoError(t, err)
	data := pattern(1 << 20)
	_, err = file.Write(data)
	require.NoError(t, err)
	require.NoError(t, fields.Close())
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, signed.URL, &body)
	require.NoError(t, err)
	request.Header.Set("Content-Type", fields.FormDataContentType())
	return request, data
}

// TestHeldWritesGoWhereTheStoreHasMovedTo holds writes of every kind and lets the store move meanwhile.
func TestHeldWritesGoWhereTheStoreHasMovedTo(t *testing.T) {
	m := newMoving(t)
	client := m.source.s3(m.source.key(testBucket, access.ReadWrite), noRetry, pathStyle)
	put(t, client, "before", []byte("here only"))
	status, answer := m.source.push(http.MethodPut, "/gateway/v1/hold", m.source.cluster.AdminToken, `{"seconds":60}`)
	require.Equal(t, http.StatusOK, status, answer)
	m.fence("")
	request, data := form(t, client, "form")
	writes := map[string]func() error{
		"put": func() error { return putting(testBucket)(t.Context(), client) },
		"large put": func() error {
			_, err := client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(testBucket), Key: aws.String("large"), Body: bytes.NewReader(pattern(20 << 20))})
			return err
		},
		"form": func() error {
			response, err := client.Options().HTTPClient.Do(request)
			if err == nil && response.StatusCode != http.StatusNoContent {
				text, _ := io.ReadAll(response.Body)
				err = fmt.Errorf("status %d: %s", response.StatusCode, text)
			}
			return err
		},
	}
	results := make(chan error, len(writes))
	for name, write := range writes {
		go func() {
			if err := write(); err != nil {
				results <- fmt.Errorf("%s: %w", name, err)
				return
			}
			results <- nil
		}()
	}
	require.Equal(t, []byte("here only"), get(t, client, "before"), "reads go on")
	require.Empty(t, results)
	m.fence(m.there())
	for range writes {
		require.NoError(t, <-results)
	}
	there := m.target.s3(m.target.key(testBucket, access.ReadWrite))
	require.Equal(t, []byte("data"), get(t, there, "object"))
	require.Equal(t, data, get(t, there, "form"))
	require.Len(t, get(t, there, "large"), 20<<20)
	_, err := client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String(testBucket), Key: aws.String("before")})
	requireCode(t, err, "NoSuchKey")
}

// TestNoWriteFailsAsTheStoreMoves writes without a pause and without a second try.
func TestNoWriteFailsAsTheStoreMoves(t *testing.T) {
	m := newMoving(t)
	client := m.source.s3(m.source.key(testBucket, access.ReadWrite), noRetry)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var done atomic.Int64
	const writers = 8
	results := make(chan error, writers)
	for range writers {
		go func() {
			for ctx.Err() == nil {
				if err := putting(testBucket)(context.Background(), client); err != nil {
					results <- err
					return
				}
				done.Add(1)
			}
			results <- nil
		}()
	}
	more := func(what string) {
		t.Helper()
		enough := done.Load() + 50
		eventually(t, what, func() bool { return done.Load() > enough || len(results) > 0 })
	}
	more("writes here")
	m.fence("")
	m.fence(m.there())
	more("writes there")
	stop()
	for range writers {
		require.NoError(t, <-results)
	}
}

// TestWhereTheStoreHasMovedToIsAway: clients come again, and the gateway is not ready until it can forward.
func TestWhereTheStoreHasMovedToIsAway(t *testing.T) {
	m := newMoving(t)
	client := m.source.s3(m.source.key(testBucket, access.ReadWrite), noRetry)
	nobody := "https://127.0.0.1:1"
	m.fence(nobody)
	began := time.Now()
	require.NotEmpty(t, requireCode(t, putting(testBucket)(t.Context(), client), "SlowDown").ErrorMessage())
	require.Less(t, time.Since(began), 3*forwardPatience, "in bounded time")
	require.Equal(t, http.StatusServiceUnavailable, m.source.readyStatus())
	status, answer := m.source.push(http.MethodPut, "/gateway/v1/fence", m.source.cluster.AdminToken, `{"to":""}`)
	require.Equal(t, http.StatusConflict, status, answer)
	m.fence(m.there())
	require.NoError(t, putting(testBucket)(t.Context(), client))
	eventually(t, "the gateway is ready", func() bool { return m.source.readyStatus() == http.StatusOK })
	m.source.stopGarage()
	require.NoError(t, putting(testBucket)(t.Context(), client), "its own Garage does not matter any more")

	response, err := client.Options().HTTPClient.Do(unsignedGet(t))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.True(t, response.Close, "clients are to leave")
	require.Equal(t, http.StatusForbidden, response.StatusCode, "the other gateway has judged")
}

func unsignedGet(t *testing.T) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, names.S3URL+"/"+testBucket+"/object", http.NoBody)
	require.NoError(t, err)
	return request
}

func TestAFenceSurvivesARestart(t *testing.T) {
	m := newMoving(t)
	dir := m.source.config.VolumeDir
	restarted := func() *rig {
		r := newRig(t, m.source.cluster, func(c *Config) { m.sameSecrets(c); c.VolumeDir = dir })
		r.ca, r.ring = m.target.ca, m.target.ring
		return r
	}
	require.NoError(t, putting(testBucket)(t.Context(), m.source.s3(m.source.key(testBucket, access.ReadWrite), noRetry)))
	m.fence("")
	for _, each := range []*rig{m.source, restarted()} {
		status, answer := each.push(http.MethodGet, "/gateway/v1/fence", each.cluster.AdminToken, "")
		require.Equal(t, http.StatusOK, status)
		require.JSONEq(t, `{"fenced":true,"to":""}`, answer)
		client := each.s3(each.key(testBucket, access.ReadWrite), noRetry)
		ctx, leave := context.WithCancel(t.Context())
		written := make(chan error, 1)
		go func() { written <- putting(testBucket)(ctx, client) }()
		require.NoError(t, getting(testBucket)(t.Context(), client), "reads go on")
		require.Empty(t, written, "no write comes through a fence")
		leave()
		require.ErrorIs(t, <-written, context.Canceled)
	}
	m.fence(m.there())
	r := restarted()
	require.NoError(t, putting(testBucket)(t.Context(), r.s3(r.key(testBucket, access.ReadWrite), noRetry)), "forwarded from the first request on")
	require.Equal(t, []byte("data"), get(t, m.target.s3(m.target.key(testBucket, access.ReadWrite)), "object"))
}
