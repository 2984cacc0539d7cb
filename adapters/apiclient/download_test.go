package apiclient

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/fault"
)

// source serves a file, with or without ranges, and breaks off as told.
type source struct {
	content []byte
	tag     string
	cut     []int // after how many bytes each request breaks off; those after it do not
	stall   bool  // hang there instead
	change  bool  // the file is another one from the second request on
	asked   []string
}

func (s *source) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked = append(s.asked, r.Header.Get("Range"))
	content, from := s.content, 0
	if s.change && len(s.asked) > 1 {
		content = bytes.Repeat([]byte("x"), len(content))
	}
	status := http.StatusOK
	if s.tag != "" {
		w.Header().Set("Accept-Ranges", "bytes")
		w.Header().Set("ETag", s.tag)
		if start, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok && r.Header.Get("If-Range") == s.tag {
			status = http.StatusPartialContent
			from, _ = strconv.Atoi(strings.TrimSuffix(start, "-"))
			w.Header().Set("Content-Range", "bytes "+start+strconv.Itoa(len(content)-1)+"/"+strconv.Itoa(len(content)))
		}
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(content)-from))
	w.WriteHeader(status)
	if len(s.asked) > len(s.cut) {
		_, _ = w.Write(content[from:])
		return
	}
	_, _ = w.Write(content[from:max(from, s.cut[len(s.asked)-1])])
	_ = http.NewResponseController(w).Flush()
	if s.stall {
		<-r.Context().Done()
	}
	panic(http.ErrAbortHandler)
}

func TestDownloads(t *testing.T) {
	content := make([]byte, 200_000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content)
	for name, c := range map[string]struct {
		source source
		asked  int
		ranges bool
		err    bool
	}{
		"in one go":                           {source{}, 1, false, false},
		"broken off twice":                    {source{cut: []int{70_000, 150_000}}, 3, false, false},
		"broken off twice, with ranges":       {source{cut: []int{70_000, 150_000}, tag: `"v1"`}, 3, true, false},
		"broken off, with a weak tag":         {source{cut: []int{70_000}, tag: `W/"v1"`}, 2, false, false},
		"broken off in what was read already": {source{cut: []int{70_000, 10_000}}, 3, false, false},
		"that hangs":                          {source{cut: []int{70_000}, stall: true}, 2, false, false},
		"broken off at the same byte always":  {source{cut: []int{7, 7, 7, 7, 7, 7, 7, 7, 7, 7}, tag: `"v1"`}, 3, true, true},
		"of a file that changes":              {source{cut: []int{70_000}, change: true}, 2, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &c.source
			s.content = content
			client := hear(t, Config{Attempts: 3}, s.ServeHTTP)
			client.stall = 300 * time.Millisecond
			d := check.Must(client.Backups.Download(t.Context(), "d", "f"))(t)
			got, err := io.ReadAll(d)
			if (err != nil) != c.err || len(s.asked) != c.asked || d.Size != int64(len(content)) || d.Close() != nil {
				t.Fatalf("%d of %d bytes, asked for %q: %v", len(got), d.Size, s.asked, err)
			}
			if Unanswered(err) != (c.err && !s.change) {
				t.Errorf("the error is %v", err)
			}
			if !bytes.HasPrefix(content, got) {
				t.Error("what was read is not the file")
			}
			sum := sha256.Sum256(got)
			if d.SHA256() != hex.EncodeToString(sum[:]) || !c.err && len(got) != len(content) {
				t.Errorf("%d bytes with the checksum %s", len(got), d.SHA256())
			}
			if ranged := strings.Join(s.asked, "") != ""; ranged != c.ranges {
				t.Errorf("asked for %q", s.asked)
			}
		})
	}
}

// A download that goes on after what an earlier one has left.
func TestContinuedDownloads(t *testing.T) {
	content := make([]byte, 200_000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content)
	whole := sha256.Sum256(content)
	sum := hex.EncodeToString(whole[:])
	tag := `"` + sum + `"`
	strange := bytes.Repeat([]byte("x"), 70_000)
	for name, c := range map[string]struct {
		have   []byte
		source source
		asked  string // the ranges
		other  bool   // the error at the beginning
		wrong  bool   // the checksum at the end
	}{
		"of nothing":       {nil, source{tag: tag}, "", false, false},
		"with ranges":      {content[:70_000], source{tag: tag}, "bytes=70000-", false, false},
		"of one byte less": {content[:199_999], source{tag: tag}, "bytes=199999-", false, false},
		"broken off again": {
			content[:70_000], source{tag: tag, cut: []int{90_000}}, "bytes=70000-,bytes=90000-", false, false,
		},
		"without ranges":                     {content[:70_000], source{}, "bytes=70000-", false, false},
		"with another tag":                   {content[:70_000], source{tag: `"v2"`}, "bytes=70000-", false, false},
		"broken off again, without ranges":   {content[:70_000], source{cut: []int{60_000}}, "bytes=70000-,bytes=70000-", false, false},
		"of a whole file":                    {content, source{}, "", false, false},
		"of more than the file":              {append(bytes.Clone(content), 1), source{}, "", true, false},
		"of another file, without ranges":    {strange, source{}, "bytes=70000-", true, false},
		"of another file, with ranges":       {strange, source{tag: tag}, "bytes=70000-", false, true},
		"of another file of the same length": {bytes.Repeat([]byte("x"), 200_000), source{}, "", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &c.source
			s.content = content
			client := hear(t, Config{Attempts: 3}, s.ServeHTTP)
			d, err := client.Backups.Download(t.Context(), "d", "f", Continue(bytes.NewReader(c.have), int64(len(content)), sum))
			if strings.Join(s.asked, ",") != c.asked && len(s.cut) == 0 || errors.Is(err, ErrOtherFile) != c.other {
				t.Fatalf("asked for %q: %v", s.asked, err)
			}
			if c.other {
				return
			}
			defer d.Close()
			rest := check.Must(io.ReadAll(d))(t)
			if !bytes.Equal(rest, content[len(c.have):]) || d.Size != int64(len(content)) || (d.SHA256() != sum) != c.wrong {
				t.Errorf("%d bytes came, size %d, checksum %s", len(rest), d.Size, d.SHA256())
			}
			if strings.Join(s.asked, ",") != c.asked {
				t.Errorf("asked for %q", s.asked)
			}
		})
	}
}

// Whoever asked for the rest of a file is told that all of it comes.
func TestADownloadThatBeginsAgainIsTold(t *testing.T) {
	content := []byte("0123456789")
	for tag, want := range map[string]int{"": 1, `"v1"`: 0} {
		again, s := 0, &source{content: content, tag: tag}
		d := check.Must(hear(t, Config{}, s.ServeHTTP).Backups.Download(t.Context(), "d", "f",
			Continue(bytes.NewReader(content[:4]), 10, "v1"), Again(func() { again++ })))(t)
		if check.NoError(t, d.Close()); again != want {
			t.Errorf("of a file with the tag %s: told %d times", tag, again)
		}
	}
}

// What cannot be read again is no download.
func TestContinuedDownloadOfAnUnreadableFile(t *testing.T) {
	s := &source{content: make([]byte, 10)}
	broken := errors.New("the disk is broken")
	_, err := hear(t, Config{}, s.ServeHTTP).Backups.Download(t.Context(), "d", "f", Continue(iotest.ErrReader(broken), 10, ""))
	if !errors.Is(err, broken) || len(s.asked) > 0 {
		t.Errorf("asked for %q: %v", s.asked, err)
	}
}

func TestDownloadThatIsRefused(t *testing.T) {
	asked := 0
	client := hear(t, Config{Attempts: 3}, func(w http.ResponseWriter, _ *http.Request) {
		asked++
		if asked == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error":{"code":"BACKUP_NOT_FOUND","message":"m","details":[]}}`)
	})
	d, err := client.Backups.Download(t.Context(), "d", "f")
	var e *Error
	if d != nil || !errors.As(err, &e) || e.Code != fault.BackupNotFound || asked != 2 {
		t.Errorf("asked %d times: %v", asked, err)
	}
}

// An answer that has no file, or only a part where all of it was asked for, is an error at once.
func TestAnswerWithoutTheFile(t *testing.T) {
	for _, status := range []int{http.StatusNoContent, http.StatusPartialContent} {
		asked := 0
		client := hear(t, Config{}, func(w http.ResponseWriter, _ *http.Request) {
			asked++
			w.WriteHeader(status)
		})
		if _, err := client.Backups.Download(t.Context(), "d", "f"); err == nil || asked != 1 {
			t.Errorf("%d: asked %d times: %v", status, asked, err)
		}
	}
}

// Close ends a Read that waits, and the file is not asked for again.
func TestCloseEndsADownload(t *testing.T) {
	s := &source{content: make([]byte, 100_000), cut: []int{50_000}, stall: true}
	d := check.Must(hear(t, Config{}, s.ServeHTTP).Backups.Download(t.Context(), "d", "f"))(t)
	time.AfterFunc(100*time.Millisecond, func() { _ = d.Close() })
	got, err := io.ReadAll(d)
	if _, again := d.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) || again == nil || len(s.asked) != 1 {
		t.Errorf("asked %d times, %d bytes: %v, then %v", len(s.asked), len(got), err, again)
	}
}
