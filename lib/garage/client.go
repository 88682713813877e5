// Package garage is a client of the admin API v2 of Garage 2.5: the calls that system-s3 uses, and no others. It
// decides nothing and retries nothing. An answer is trusted only as far as Garage means it: a 404 that names what is
// missing is absence, every other failure leaves the state unknown.
package garage

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// maxAnswer bounds what is read of an answer, in bytes: a page of a thousand buckets takes less than one MiB.
const maxAnswer = 16 << 20

// Client talks to the admin API of one node. All changes of one cluster must go through one node at a time: Garage
// locks buckets, keys and layout per node only.
type Client struct {
	base  string
	token string
	http  *http.Client
}

// New makes a client of the admin API at baseURL, such as https://10.1.1.7:8444. The deadline of a call is its
// context's.
func New(baseURL, token string, httpClient *http.Client) *Client {
	return &Client{base: strings.TrimRight(baseURL, "/"), token: token, http: httpClient}
}

// read asks for something; answer is where the JSON goes.
func (c *Client) read(ctx context.Context, call string, query url.Values, answer any) error {
	return c.do(ctx, request{method: http.MethodGet, call: call, query: query}, answer)
}

// change sends body as JSON; a nil answer discards Garage's.
func (c *Client) change(ctx context.Context, r request, answer any) error {
	r.method = http.MethodPost
	return c.do(ctx, r, answer)
}

type request struct {
	method string
	call   string
	query  url.Values
	body   any // nil sends no body
}

func (c *Client) do(ctx context.Context, r request, answer any) error {
	request, err := c.prepare(ctx, r)
	if err != nil {
		return fmt.Errorf("%s: %w", r.call, err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("%s: %w", r.call, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return fmt.Errorf("%s: read the answer: %w", r.call, err)
	}
	if response.StatusCode != http.StatusOK {
		return newError(r.call, response.StatusCode, body)
	}
	if len(body) > maxAnswer {
		return fmt.Errorf("%s: the answer is longer than %d bytes", r.call, maxAnswer)
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("%s: decode the answer: %w", r.call, err)
	}
	return nil
}

func (c *Client) prepare(ctx context.Context, r request) (*http.Request, error) {
	var body io.Reader = http.NoBody
	if r.body != nil {
		encoded, err := json.Marshal(r.body)
		if err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		body = bytes.NewReader(encoded)
	}
	address := c.base + "/v2/" + r.call
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, r.method, address, body)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	if r.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return request, nil
}
