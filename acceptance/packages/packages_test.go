//go:build packages

// Package packages tries what a release has: Debian packages are built, and installed, upgraded, removed and purged in bare
// Debians; the pages for beginners are followed in such Debians, booted by systemd; the image runs; and Go installs the client.
package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

const (
	before, now = "v1.0.0-rc.1", "v1.0.0"
	// commit is that of the sources that "git archive" has packed, in the placeholder's place.
	commit, second = "0123456789012345678901234567890123456789", "1767225600"
)

// sources has the files of the repository, as they are now, as "git archive" packs them: without git.
func sources(t *testing.T) (folder string) {
	t.Helper()
	root := check.Must(toolchain.Root())(t)
	folder = t.TempDir()
	run(t, root, `git ls-files -z --cached --others --exclude-standard |
		tar --create --null --files-from=- | tar --extract --directory "$1"`, folder)
	archived := filepath.Join(folder, "hosts/internal/version/archived.txt")
	check.NoError(t, os.WriteFile(archived, []byte(commit+" "+second+"\n"), 0o644))
	check.NoError(t, os.Mkdir(filepath.Join(folder, ".toolchain"), 0o755))
	for _, tool := range []string{"nfpm", "cyclonedx-gomod"} {
		check.NoError(t, os.Symlink(filepath.Join(root, toolchain.Dir, tool), filepath.Join(folder, toolchain.Dir, tool)))
	}
	return folder
}

// run runs a script in a folder and returns what it prints.
func run(t *testing.T, folder, script string, args ...string) string {
	t.Helper()
	out, err := try(t, folder, script, args...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return out
}

func try(t *testing.T, folder, script string, args ...string) (string, error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "sh", append([]string{"-euc", script, "sh"}, args...)...)
	c.Dir, c.Env = folder, append(os.Environ(), "MAKEFLAGS=", "VERSION=", "LC_ALL=C")
	out, err := c.CombinedOutput()
	return string(out), err
}

func TestPackages(t *testing.T) {
	from := sources(t)
	for _, version := range []string{before, now} {
		run(t, from, `make packages VERSION="$1" DIST="$1"`, version)
	}
	t.Run("the same sources make the same files", func(t *testing.T) {
		again := sources(t)
		run(t, again, `make packages VERSION="$1"`, now)
		run(t, again, `diff --recursive dist "$1" && cd dist && sha256sum --check --strict SHA256SUMS`, filepath.Join(from, now))
	})
	t.Run("whoever releases signs them", func(t *testing.T) {
		home := t.TempDir()
		t.Setenv("GNUPGHOME", home)
		run(t, home, `chmod 700 . && gpg --batch --passphrase '' --quick-generate-key releases@example.com ed25519 sign 1d`)
		run(t, from, `make packages VERSION=v1.0.1 DIST=signed KEY=releases@example.com`)
		run(t, from, `cd signed && gpg --verify SHA256SUMS.asc SHA256SUMS`)
	})
	t.Run("what is no version, or has no commit, is refused", func(t *testing.T) {
		for _, args := range []string{"", "VERSION=1.0", "VERSION=v1.0.0 ARCH=vax"} {
			if out, err := try(t, from, "make packages "+args); err == nil || !strings.Contains(out, "packages: ") {
				t.Errorf("make packages %s: %v\n%s", args, err, out)
			}
		}
		none := sources(t)
		check.NoError(t, os.WriteFile(filepath.Join(none, "hosts/internal/version/archived.txt"), []byte("$Format:%H %ct$\n"), 0o644))
		if out, err := try(t, none, "make packages VERSION="+now); err == nil || !strings.Contains(out, "have no commit") {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("the image runs", func(t *testing.T) { readImage(t, filepath.Join(from, now)).runs(t) })
	for _, suite := range []string{"bookworm", "trixie"} {
		t.Run(suite, func(t *testing.T) {
			d := install(t, suite)
			for _, version := range []string{before, now} {
				check.NoError(t, os.CopyFS(filepath.Join(d.root, version), os.DirFS(filepath.Join(from, version))))
			}
			d.life(t)
		})
	}
}
