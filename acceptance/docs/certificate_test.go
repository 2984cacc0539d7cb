package docs

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/certificate"
)

// The lines of docs/use/backups.md that check a certificate do so.
func TestOpensslChecksACertificate(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Fatal("docs/use/backups.md is tested with the program that it names: install openssl")
	}
	var seed [certificate.SeedBytes]byte
	key := certificate.NewKey("k", seed, time.Now())
	c := check.Must(key.Sign(seed[:], []byte(`{"version":1}`)))(t)
	dir := t.TempDir()
	put := func(name string, text []byte) { check.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600)) }
	put("document", c.Document)
	put("signature", c.Signature)
	put("key.pem", []byte(key.PEM()))
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
