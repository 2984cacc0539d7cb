package copyout

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgherd/pgherd/core/backup"
)

// served is a Reader whose server answers with what write sends.
func served(t *testing.T, write func(io.Writer)) *Reader {
	t.Helper()
	here, there := net.Pipe()
	out := &Reader{conn: here, in: bufio.NewReaderSize(here, copyBuffer)}
	t.Cleanup(out.Close)
	go func() {
		defer there.Close()
		query := make([]byte, 5)
		if _, err := io.ReadFull(there, query); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, there, int64(binary.BigEndian.Uint32(query[1:]))-4); err != nil {
			return
		}
		write(there)
	}()
	return out
}

func message(kind byte, body string) string {
	return string(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4))) + body
}

// A row may be as long as PostgreSQL makes it, 1 GB. This one has 64 MB, of which nothing is kept.
func TestALongRowIsReadWithoutKeepingIt(t *testing.T) {
	const size = 64 << 20
	piece := bytes.Repeat([]byte("x"), 1<<16)
	out := served(t, func(to io.Writer) {
		_, _ = to.Write(binary.BigEndian.AppendUint32([]byte{'d'}, size+1+4))
		for range size / len(piece) {
			_, _ = to.Write(piece)
		}
		_, _ = io.WriteString(to, "\n"+message('c', "")+message('C', "COPY 1\x00")+message('Z', "I"))
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var sum backup.LineSum
	rows, err := out.Read(t.Context(), "COPY t TO STDOUT", &sum)
	runtime.ReadMemStats(&after)
	if err != nil || rows != 1 || sum.Digest(nil).Rows != 1 {
		t.Errorf("%d rows, digest %+v, %v", rows, sum.Digest(nil), err)
	}
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 1<<20 {
		t.Errorf("%d bytes of memory were taken", taken)
	}
}

func TestWhatPostgreSQLAnswersToACopy(t *testing.T) {
	data, end := message('d', "1\n")+message('d', "2\n"), message('Z', "I")
	done := message('c', "") + message('C', "COPY 2\x00")
	refusal := message('E', "SERROR\x00VERROR\x00C42703\x00Mno such column\x00\x00")
	for name, c := range map[string]struct {
		sent string
		want string // in the error; empty: none
	}{
		"all":              {message('H', "\x00\x00\x00") + data + message('N', "\x00") + done + end, ""},
		"a refusal":        {refusal + end, "no such column"},
		"a late refusal":   {data + refusal + end, "no such column"},
		"a broken session": {data, io.EOF.Error()},
		"a broken row":     {data[:len(data)-1], io.ErrUnexpectedEOF.Error()},
		"no size":          {"d\x00\x00\x00\x03", "no size"},
		"too long a word":  {"E\x7f\xff\xff\xff", "a message of"},
		"a question":       {message('G', "\x00\x00\x00"), "asks for data"},
	} {
		var text bytes.Buffer
		rows, err := served(t, func(to io.Writer) { _, _ = io.WriteString(to, c.sent) }).Read(t.Context(), "COPY t TO STDOUT", &text)
		switch {
		case c.want == "" && (err != nil || rows != 2 || text.String() != "1\n2\n"):
			t.Errorf("%s: %d rows, %q, %v", name, rows, text.String(), err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v", name, err)
		case strings.Contains(name, "refusal") && !errors.As(err, new(*pgconn.PgError)):
			t.Errorf("%s: %v is not PostgreSQL's", name, err)
		}
	}
}

func TestACopyEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	began := time.Now()
	out := served(t, func(to io.Writer) {
		_, _ = io.WriteString(to, message('d', "1\n"))
		cancel()
		<-t.Context().Done()
	})
	_, err := out.Read(ctx, "COPY t TO STDOUT", io.Discard)
	if took := time.Since(began); !errors.Is(err, context.Canceled) || took > 10*time.Second {
		t.Errorf("after %s: %v", took, err)
	}
}
