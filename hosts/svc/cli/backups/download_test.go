package backups

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

// remoteOf is a file on a server that can go on in the middle of it, or not. It keeps the ranges that were asked for.
func remoteOf(t *testing.T, content []byte, ranges bool) (f remoteFile, asked *[]string) {
	t.Helper()
	sum := sha256.Sum256(content)
	f = remoteFile{Name: "20260105_093000.sql.gz", Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:])}
	asked = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.Header.Get("Range"))
		if ranges {
			w.Header().Set("ETag", `"`+f.SHA256+`"`)
		} else {
			r.Header.Del("Range")
		}
		http.ServeContent(w, r, "f", time.Time{}, bytes.NewReader(content))
	}))
	t.Cleanup(server.Close)
	client := check.Must(apiclient.New(apiclient.Config{URL: server.URL, Attempts: 1}))(t)
	f.open = func(ctx context.Context, o ...apiclient.Option) (*apiclient.Download, error) {
		return client.Backups.Download(ctx, "d", f.Name, o...)
	}
	return f, asked
}

func noise(n int, seed byte) []byte {
	content := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(content)
	return content
}

// silent is an app that nobody looks at.
func silent(t *testing.T) *app.App {
	return &app.App{Ctx: t.Context(), Out: app.Screen{Writer: io.Discard}, Err: app.Screen{Writer: io.Discard}}
}

func TestDownloadAfterWhatIsHere(t *testing.T) {
	content, other := noise(200_000, 1), noise(200_000, 2)
	damaged := bytes.Clone(content[:150_000])
	damaged[70_000] ^= 1
	for name, c := range map[string]struct {
		have []byte
		// asked are the ranges, with a server that can go on in the middle.
		asked []string
	}{
		"nothing":                       {nil, []string{""}},
		"killed after a byte":           {content[:1], []string{"bytes=1-"}},
		"killed in the middle":          {content[:100_000], []string{"bytes=100000-"}},
		"killed before the last byte":   {content[:199_999], []string{"bytes=199999-"}},
		"killed before the file's name": {content, nil},
		"damaged":                       {damaged, []string{"bytes=150000-", ""}},
		"damaged when all had come":     {append(bytes.Clone(damaged), content[150_000:]...), []string{""}},
		"of another file":               {other[:100_000], []string{"bytes=100000-", ""}},
		"of another file, whole":        {other, []string{""}},
		"of a longer file":              {noise(300_000, 3), []string{""}},
	} {
		for _, ranges := range []bool{true, false} {
			path := filepath.Join(t.TempDir(), "f.sql.gz")
			if c.have != nil {
				check.NoError(t, os.WriteFile(path+".partial", c.have, 0o600))
			}
			f, asked := remoteOf(t, content, ranges)
			err := storeFile(t.Context(), silent(t), downloading{output: path}, f)
			if got, _ := os.ReadFile(path); err != nil || !bytes.Equal(got, content) {
				t.Errorf("%s, ranges %v: %d bytes: %v", name, ranges, len(got), err)
			}
			if strings.Join(*asked, ",") != strings.Join(c.asked, ",") {
				t.Errorf("%s, ranges %v: asked for %q; want %q", name, ranges, *asked, c.asked)
			}
			if _, err := os.Stat(path + ".partial"); err == nil {
				t.Errorf("%s, ranges %v: the partial file is left", name, ranges)
			}
		}
	}
}

func TestDownloadOfADamagedFile(t *testing.T) {
	f, _ := remoteOf(t, noise(1000, 1), true)
	f.SHA256 = strings.Repeat("0", 64)
	path := filepath.Join(t.TempDir(), "f.sql.gz")
	if err := storeFile(t.Context(), silent(t), downloading{output: path}, f); !errors.Is(err, errDamaged) {
		t.Errorf("got %v", err)
	}
	if left := check.Must(os.ReadDir(filepath.Dir(path)))(t); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	var text bytes.Buffer
	if err := streamTo(t.Context(), silent(t), &text, f); !errors.Is(err, errDamaged) || text.Len() != 1000 {
		t.Errorf("streamed %d bytes: %v", text.Len(), err)
	}
}

// What has come stays when a download is interrupted, and what to do then is said.
func TestInterruptedDownload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.sql.gz")
	check.NoError(t, os.WriteFile(path+".partial", noise(1000, 1)[:600], 0o600))
	f, _ := remoteOf(t, noise(1000, 1), true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := storeFile(ctx, silent(t), downloading{output: path}, f)
	text, status := app.Explain(err, app.Unlimited)
	const want = "svc: interrupted\nnext: repeat this command: it goes on after the 600 B that have come"
	if text != want || status != app.StatusRefused {
		t.Errorf("status %d: %s", status, text)
	}
	if left := check.Must(os.ReadFile(path + ".partial"))(t); len(left) != 600 {
		t.Errorf("%d bytes are left", len(left))
	}
}

func TestAFileIsReplacedWithForceOnly(t *testing.T) {
	content := noise(1000, 1)
	f, asked := remoteOf(t, content, true)
	folder := t.TempDir() + "/"
	path := filepath.Join(folder, string(f.Name))
	check.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
	if err := storeFile(t.Context(), silent(t), downloading{output: folder}, f); err == nil || len(*asked) > 0 {
		t.Errorf("asked %d times: %v", len(*asked), err)
	}
	if got := check.Must(os.ReadFile(path))(t); string(got) != "mine" {
		t.Errorf("it holds %q", got)
	}
	check.NoError(t, storeFile(t.Context(), silent(t), downloading{output: folder, force: true}, f))
	if got := check.Must(os.ReadFile(path))(t); !bytes.Equal(got, content) {
		t.Errorf("it holds %q", got)
	}
}

func TestWhatIsNoFileIsNeverReplaced(t *testing.T) {
	f, asked := remoteOf(t, noise(1000, 1), true)
	folder := t.TempDir()
	file, link, pipe := filepath.Join(folder, "file"), filepath.Join(folder, "link"), filepath.Join(folder, "pipe")
	check.NoError(t, os.WriteFile(file, []byte("mine"), 0o600))
	check.NoError(t, os.Symlink(file, link))
	check.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, path := range []string{link, pipe, os.DevNull} {
		err := storeFile(t.Context(), silent(t), downloading{output: path, force: true}, f)
		if err == nil || !strings.Contains(err.Error(), path+" is no regular file") || len(*asked) > 0 {
			t.Errorf("%s: asked %d times: %v", path, len(*asked), err)
		}
	}
}

// A person who goes on with a download is told where nothing is saved by it.
func TestADownloadThatBeginsAgainIsSaid(t *testing.T) {
	const here = "600 B of 1000 B are here: going on after them\n"
	for ranges, want := range map[bool]string{
		true:  here,
		false: here + "the API sends the file from its start again: it is compared with what has come before\n",
	} {
		path := filepath.Join(t.TempDir(), "f.sql.gz")
		check.NoError(t, os.WriteFile(path+".partial", noise(1000, 1)[:600], 0o600))
		f, _ := remoteOf(t, noise(1000, 1), ranges)
		var said bytes.Buffer
		a := silent(t)
		a.Err.Writer = &said
		check.NoError(t, storeFile(t.Context(), a, downloading{output: path}, f))
		if said.String() != want {
			t.Errorf("ranges %v: %s", ranges, said.String())
		}
	}
}

func TestTheNameOfARemoteFile(t *testing.T) {
	for name, valid := range map[backup.Filename]bool{
		"20260105_093000.sql.gz":        true,
		"../20260105_093000.sql.gz":     false,
		"\x1b[2J20260105_093000.sql.gz": false,
	} {
		if _, err := checkRemote(remoteFile{Name: name}); (err == nil) != valid || err != nil && strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
