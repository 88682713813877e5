package kube_test

import (
	"context"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/deckhouse/system-s3/lib/kube"
	"github.com/deckhouse/system-s3/lib/names"
)

// newAPIServer answers TokenReviews.
func newAPIServer(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "Bearer of-the-controller", r.Header.Get("Authorization"))
		assert.Equal(t, 2, r.ProtoMajor)
		review := &authenticationv1.TokenReview{}
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		codec := protobuf.NewSerializer(clientgoscheme.Scheme, clientgoscheme.Scheme) // what client-go prefers
		_, _, err = codec.Decode(body, nil, review)
		assert.NoError(t, err)
		review.Status = authenticationv1.TokenReviewStatus{
			Authenticated: true, Audiences: review.Spec.Audiences, User: authenticationv1.UserInfo{Username: review.Spec.Token},
		}
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
		w.WriteHeader(http.StatusCreated)
		assert.NoError(t, codec.Encode(review, w))
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// network is the way to a server, on which connections can die without a word, as when a node is lost.
type network struct {
	listener net.Listener
	server   string

	mu   sync.Mutex
	lost []*link
}

// link is one connection; a dead one takes everything and brings nothing.
type link struct {
	net.Conn

	dead chan struct{}
}

func (l *link) Write(p []byte) (int, error) {
	select {
	case <-l.dead:
		return len(p), nil
	default:
		return l.Conn.Write(p)
	}
}

func newNetwork(t *testing.T, server string) *network {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	n := &network{listener: listener, server: server}
	go n.serve()
	t.Cleanup(func() { _ = listener.Close() })
	return n
}

func (n *network) serve() {
	for {
		client, err := n.listener.Accept()
		if err != nil {
			return
		}
		server, err := (&net.Dialer{}).Dial("tcp", n.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		dead := make(chan struct{})
		to, from := &link{server, dead}, &link{client, dead}
		n.mu.Lock()
		n.lost = append(n.lost, to)
		n.mu.Unlock()
		for _, pair := range [][2]net.Conn{{to, client}, {from, server}} {
			go func() { _, _ = io.Copy(pair[0], pair[1]); _ = pair[0].Close() }() // ends when the test does
		}
	}
}

// lose kills all connections that there are.
func (n *network) lose() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.lost {
		close(l.dead)
	}
	n.lost = nil
}

func TestALostApiserverIsNoticed(t *testing.T) {
	server := newAPIServer(t)
	way := newNetwork(t, server.Listener.Addr().String())
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	reviews, err := kube.NewReviews(&rest.Config{
		Host: "https://" + way.listener.Addr().String(), BearerToken: "of-the-controller", TLSClientConfig: rest.TLSClientConfig{CAData: ca},
	}, kube.Unlimited())
	require.NoError(t, err)
	id, err := reviews.Review(t.Context(), "app")
	require.NoError(t, err)
	require.Equal(t, "app", id.Username)
	require.Equal(t, []string{names.Audience}, id.Audiences)

	way.lose()
	ask := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := reviews.Review(ctx, "app")
		return err
	}
	require.Error(t, ask(), "nobody answers")
	require.Eventually(t, func() bool { return ask() == nil }, 20*time.Second, 10*time.Millisecond, "another connection is made: client-go's own would take 45 seconds")
}
