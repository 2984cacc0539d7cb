package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/certificate"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/fault"
)

// certified is a world whose database has so many tables, and a backup that has a certificate.
func certified(t *testing.T, tables int) *slotWorld {
	t.Helper()
	w := newSlotWorld(t, func(c *controlplane.Config) { c.DownloadWait = 50 * time.Millisecond })
	w.resume()
	check.Must(w.use.Operator.CreateCertificateKey(t.Context()))(t)
	var sql strings.Builder
	for i := range tables {
		fmt.Fprintf(&sql, "INSERT INTO table_%d VALUES (1)\n", i)
	}
	w.server.Load(w.database.Name, sql.String())
	files := "/api/v1/databases/" + string(w.database.ID) + "/backups"
	w.ask(t, head("POST", files, w.key))
	for range 3 {
		check.Must(w.use.Work.RunNext(t.Context()))(t)
		w.clock.Advance(time.Second)
	}
	w.path = files + "/" + filePattern.FindString(w.ask(t, head("GET", files, w.key)).text)
	return w
}

// A client that takes nothing of a large certificate keeps the account's turn, and no other. When it leaves, the turn is free.
func TestACertificateKeepsItsTurnUntilItWasSent(t *testing.T) {
	w := certified(t, 45_000)
	get := func(key string) string { return head("GET", w.path+"/certificate", key) }
	slow := w.dial(t)
	slow.say(get(w.key))
	_ = slow.SetReadDeadline(time.Now().Add(cutBy))
	check.Must(slow.br.Peek(1))(t)

	if r := w.ask(t, get(w.key)); !strings.Contains(r.text, string(fault.RateLimited)) || r.Header.Get("Retry-After") == "" {
		t.Errorf("another one of the account: %d, %d bytes", r.StatusCode, len(r.text))
	}
	if r := w.ask(t, get(w.bob)); r.StatusCode != http.StatusOK || len(r.text) < 4<<20 {
		t.Errorf("another account: %d, %d bytes", r.StatusCode, len(r.text))
	}
	_ = slow.Close()
	check.Eventually(t, "the turn of a client that left is not free", func() bool {
		return w.ask(t, get(w.key)).StatusCode == http.StatusOK
	})
}

// The lines of docs/use/backups.md that check a certificate do so.
func TestOpensslChecksACertificate(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Fatal("docs/use/backups.md is tested with the program that it names: install openssl")
	}
	w := certified(t, 2)
	var c wire.Certificate
	r := w.ask(t, head("GET", w.path+"/certificate", w.key))
	if h := r.Header; h.Get("Content-Type") != "application/json" || h.Get("Content-Disposition") != "" {
		t.Errorf("headers %v", h)
	}
	check.NoError(t, json.Unmarshal([]byte(r.text), &c))
	var keys wire.Page[wire.CertificateKey]
	check.NoError(t, json.Unmarshal([]byte(w.ask(t, head("GET", "/api/v1/certificate-keys", "")).text), &keys))
	if len(keys.Data) != 1 || keys.Data[0].KeyID != c.KeyID {
		t.Fatalf("the keys are %+v", keys)
	}
	var d certificate.Document
	check.NoError(t, json.Unmarshal(c.Document, &d))

	dir := t.TempDir()
	put := func(name string, text []byte) { check.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600)) }
	put("document", c.Document)
	put("signature", c.Signature)
	put("key.pem", []byte(keys.Data[0].PEM))
	put("20260301_113000.sql.gz", []byte("a file"))
	run := func() (string, error) {
		cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", checkingLines(t))
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	sum := sha256.Sum256([]byte("a file"))
	if out, err := run(); err != nil || !strings.Contains(out, "Signature Verified Successfully") ||
		!strings.Contains(out, hex.EncodeToString(sum[:])) {
		t.Errorf("%v: %s", err, out)
	}
	c.Document[len(c.Document)/2] ^= 1
	put("document", c.Document)
	if out, err := run(); err == nil || !strings.Contains(out, "Signature Verification Failure") {
		t.Errorf("with another byte: %v: %s", err, out)
	}
}

// checkingLines are the two lines of the page.
func checkingLines(t *testing.T) string {
	t.Helper()
	page := string(check.Must(os.ReadFile("../../docs/use/backups.md"))(t))
	at := strings.Index(page, "openssl pkeyutl")
	lines, _, found := strings.Cut(page[max(at, 0):], "```")
	if at < 0 || !found || strings.Count(lines, "\n") != 2 {
		t.Fatalf("docs/use/backups.md checks a certificate with %q", lines)
	}
	return lines
}
