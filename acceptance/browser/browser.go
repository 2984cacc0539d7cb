package browser

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"net"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// Browser is a Chromium with a profile of its own, of which nothing is left when the test is over.
type Browser struct {
	ctx   context.Context
	home  string
	group int // of its processes

	mu        sync.Mutex
	downloads map[string]*download // by the browser's name for them
}

// Start starts a browser that ends with the test, or with the process of the test. It takes the certificates that the origins
// have now, each of which must be good for its host by the roots. Every host name leads to this machine, so a page reaches
// nothing outside it.
func Start(t testing.TB, roots *x509.CertPool, origins ...string) *Browser {
	t.Helper()
	program := filepath.Join(check.Must(toolchain.Folder(toolchain.Browser))(t), "bin", "chromium")
	b := &Browser{home: t.TempDir(), downloads: map[string]*download{}}
	var keys []string
	for _, origin := range origins {
		keys = append(keys, keyOf(t, roots, origin))
	}
	var cmd *exec.Cmd
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program),
		chromedp.UserDataDir(b.home),
		chromedp.NoInheritEnv,
		chromedp.NoSandbox, // of the kernel, which not every machine has for whoever is not root: it sees our pages alone
		chromedp.Env("HOME="+b.home, "XDG_CACHE_HOME="+b.home, "TMPDIR="+b.home, "TZ=UTC", "LANG=C.UTF-8"),
		chromedp.Flag("disable-gpu", true),
		chromedp.Flag("font-render-hinting", "none"),
		chromedp.Flag("host-resolver-rules", "MAP * 127.0.0.1"),
		chromedp.Flag("ignore-certificate-errors-spki-list", strings.Join(keys, ",")),
		chromedp.Flag("lang", "en-US"),
		chromedp.ModifyCmdFunc(func(c *exec.Cmd) { cmd, c.SysProcAttr = c, attributes() }),
	)
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(func() {
		stop()
		if b.group != 0 {
			end(t, b.group)
		}
	})
	b.ctx, _ = chromedp.NewContext(allocator) // stop ends it
	err := chromedp.Do(b.ctx)
	if cmd != nil && cmd.Process != nil {
		b.group = cmd.Process.Pid
	}
	check.NoError(t, err, "start Chromium")
	check.NoError(t, chromedp.ListenBrowser(b.ctx, b.note))
	return b
}

// end kills what is left of the browser's processes, and waits until there is none: they write into a folder that is removed.
func end(t testing.TB, group int) {
	_ = syscall.Kill(-group, syscall.SIGKILL) // ESRCH: there is none left
	check.Eventually(t, "processes of Chromium outlive it", func() bool { return len(living(group)) == 0 })
}

// keyOf is the hash of the key in the origin's certificate, as Chromium wants it to let that key pass.
func keyOf(t testing.TB, roots *x509.CertPool, origin string) string {
	t.Helper()
	u := check.Must(url.Parse(origin))(t)
	port := u.Port()
	if port == "" {
		port = "443"
	}
	c := check.Must(tls.Dial("tcp", net.JoinHostPort("127.0.0.1", port), &tls.Config{RootCAs: roots, ServerName: u.Hostname()}))(t)
	hash := sha256.Sum256(c.ConnectionState().PeerCertificates[0].RawSubjectPublicKeyInfo)
	check.NoError(t, c.Close())
	return base64.StdEncoding.EncodeToString(hash[:])
}

// download is a file that a page gave to the person.
type download struct {
	frame, name string
	state       browser.DownloadProgressState
}

// note is told everything that happens to the browser.
func (b *Browser) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *browser.EventDownloadWillBegin:
		b.downloads[e.GUID] = &download{frame: string(e.FrameID), name: e.SuggestedFilename}
	case *browser.EventDownloadProgress:
		if d := b.downloads[e.GUID]; d != nil {
			d.state = e.State
		}
	}
}

// takeDownload returns what a page has downloaded whole, and forgets it.
func (b *Browser) takeDownload(frame string) (file, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for guid, d := range b.downloads {
		if d.frame == frame && d.state == browser.DownloadProgressStateCompleted {
			delete(b.downloads, guid)
			return filepath.Join(b.home, guid), d.name
		}
	}
	return "", ""
}
