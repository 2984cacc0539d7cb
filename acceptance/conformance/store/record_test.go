package store_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// recordFile is where to write the statements that the suites' stores send, see "make record-statements"; empty: nowhere.
var recordFile = os.Getenv("PGHERD_RECORD_STATEMENTS")

// recorder stands between stores and PostgreSQL, and keeps the statements that it sees prepared, each with a few sets of
// arguments: one for each pattern of nulls.
type recorder struct {
	mu         sync.Mutex
	statements map[string][][]*string // by text
}

var recorded = recorder{statements: map[string][][]*string{}}

// through is a URL of the same database whose connections pass the recorder.
func (r *recorder) through(t *testing.T, direct string) string {
	t.Helper()
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	server := u.Host
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go r.relay(client, server)
		}
	}()
	u.Host = listener.Addr().String()
	return u.String()
}

func (r *recorder) relay(client net.Conn, address string) {
	defer client.Close()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}()
	in, texts := bufio.NewReader(client), map[string]string{}
	for first := true; ; first = false {
		message, err := readMessage(in, first)
		if err != nil {
			return
		}
		if !first {
			r.note(message[0], message[5:], texts)
		}
		if _, err := server.Write(message); err != nil {
			return
		}
	}
}

// readMessage reads a message of the frontend; the first one of a connection has no type.
func readMessage(in *bufio.Reader, first bool) ([]byte, error) {
	head := make([]byte, 5)
	if first {
		head = head[:4]
	}
	if _, err := io.ReadFull(in, head); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[len(head)-4:])-4)
	_, err := io.ReadFull(in, body)
	return slices.Concat(head, body), err
}

// note keeps what a Parse or Bind message says. texts are those of the connection's prepared statements.
func (r *recorder) note(kind byte, body []byte, texts map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch name, rest := cString(body); kind {
	case 'P':
		text, _ := cString(rest)
		if texts[name] = text; r.statements[text] == nil {
			r.statements[text] = [][]*string{}
		}
	case 'B':
		text, arguments := cString(rest) // the portal came first
		text = texts[text]
		set := boundTo(arguments)
		same := func(other []*string) bool { return nulls(other) == nulls(set) }
		if !slices.ContainsFunc(r.statements[text], same) {
			r.statements[text] = append(r.statements[text], set)
		}
	}
}

func cString(b []byte) (text string, rest []byte) {
	head, rest, _ := bytes.Cut(b, []byte{0})
	return string(head), rest
}

// boundTo reads the arguments of a Bind message, which lib/pq sends as text.
func boundTo(b []byte) []*string {
	number := func(size int) (n int) {
		for _, digit := range b[:size] {
			n = n<<8 | int(digit)
		}
		b = b[size:]
		return n
	}
	b = b[2*number(2):] // the formats
	set := make([]*string, number(2))
	for i := range set {
		if size := number(4); size != 1<<32-1 {
			text := string(b[:size])
			set[i], b = &text, b[size:]
		}
	}
	return set
}

func nulls(set []*string) string {
	var pattern strings.Builder
	for _, argument := range set {
		fmt.Fprint(&pattern, argument == nil, " ")
	}
	return pattern.String()
}

// write stores what was recorded in a form that a diff can be read of.
func (r *recorder) write() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(r.statements); err != nil {
		return err
	}
	return os.WriteFile(recordFile, out.Bytes(), 0o644)
}
