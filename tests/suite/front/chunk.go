package front

import (
	"bytes"
	"strconv"
	"strings"
)

const (
	chunkSignature   = ";chunk-signature="
	trailerSignature = "x-amz-trailer-signature:"
	newline          = "\r\n"
)

// chain is the signatures of a body in chunks, each of which depends on the one before.
type chain struct {
	date, scope string
	key         []byte
	last        string
}

func (c *chain) chunk(data string) string {
	c.last = hexMAC(c.key, strings.Join([]string{algorithm + "-PAYLOAD", c.date, c.scope, c.last, hexSum(""), hexSum(data)}, "\n"))
	return c.last
}

func (c *chain) trailer(lines string) string {
	c.last = hexMAC(c.key, strings.Join([]string{algorithm + "-TRAILER", c.date, c.scope, c.last, hexSum(lines)}, "\n"))
	return c.last
}

// rechain signs the chunks of a body anew, as far as they were signed well. From the first on that was not, the body
// stays as it is.
func rechain(body []byte, from, to chain) []byte {
	var out bytes.Buffer
	for {
		head, rest, found := bytes.Cut(body, []byte(newline))
		size, given, signed := strings.Cut(string(head), chunkSignature)
		n, err := strconv.ParseInt(size, 16, 64)
		if !found || !signed || err != nil || n > int64(len(rest)) || n < 0 {
			break
		}
		data := rest[:n]
		if from.chunk(string(data)) != given {
			break
		}
		out.WriteString(size + chunkSignature + to.chunk(string(data)) + newline)
		out.Write(data)
		body = rest[n:]
		if n == 0 {
			return append(out.Bytes(), retrail(body, from, to)...)
		}
		if !bytes.HasPrefix(body, []byte(newline)) {
			break
		}
		out.WriteString(newline)
		body = body[len(newline):]
	}
	out.Write(body)
	return out.Bytes()
}

// retrail signs the trailer anew, if there is one and it was signed well.
func retrail(body []byte, from, to chain) []byte {
	before, after, found := strings.Cut(string(body), trailerSignature)
	given, rest, _ := strings.Cut(after, newline)
	lines := strings.ReplaceAll(before, newline, "\n")
	if !found || from.trailer(lines) != given {
		return body
	}
	return []byte(before + trailerSignature + to.trailer(lines) + newline + rest)
}
