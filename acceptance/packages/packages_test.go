//go:build packages

// Package packages tries what a release has: Debian packages are built, and installed, upgraded, removed and purged in bare
// Debians; the pages for beginners are followed in such Debians, booted by systemd; the image runs; Terraform takes the provider,
// and Go installs the client.
package packages

import (
	"net/http"
	"net/http/httptest"
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

// repository has the sources as a clone has them, in a commit with a tag.
func repository(t *testing.T, tag string) (folder string) {
	t.Helper()
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	for _, who := range []string{"GIT_AUTHOR_", "GIT_COMMITTER_"} {
		t.Setenv(who+"NAME", "test")
		t.Setenv(who+"EMAIL", "test@example.com")
	}
	folder = sources(t)
	unpacked(t, folder)
	run(t, folder, `git init --quiet && git add --all && git commit --quiet --message release && git tag "$1"`, tag)
	return folder
}

// unpacked takes from sources what "git archive" has put into them.
func unpacked(t *testing.T, folder string) {
	t.Helper()
	archived := filepath.Join(folder, "hosts/internal/version/archived.txt")
	check.NoError(t, os.WriteFile(archived, []byte("$Format:%H %ct$\n"), 0o644))
}

func TestPackages(t *testing.T) {
	from, older := sources(t), sources(t)
	run(t, from, `make packages VERSION="$1"`, now)
	release := filepath.Join(from, "dist")
	// What a setting means is said in other words.
	run(t, older, `sed -i 's/what the log calls this server/how the log names this server/' hosts/agentd/agentd.go`)
	run(t, older, `make packages VERSION="$1"`, before)
	t.Run("the same sources make the same files elsewhere", func(t *testing.T) {
		again := sources(t)
		// What packs was built by other compilers.
		run(t, again, `cd .toolchain && for tool in *; do cp --remove-destination "$(readlink $tool)" $tool && echo >> $tool; done`)
		elsewhere(t, again, `make packages VERSION="$1"`, now)
		run(t, again, `diff --recursive dist "$1" && cd dist && sha256sum --check --strict SHA256SUMS`, release)
	})
	t.Run("whoever releases signs them", func(t *testing.T) { signed(t, from) })
	t.Run("what is wrong is refused", func(t *testing.T) { refused(t, from) })
	t.Run("what is installed is uninstalled", func(t *testing.T) {
		run(t, from, `make install DESTDIR="$1" && [ -x "$1/usr/local/bin/pgherd" ] &&
			make uninstall DESTDIR="$1" && ! find "$1" -type f | grep .`, t.TempDir())
	})
	t.Run("the client says which it is", func(t *testing.T) { saysWhich(t, filepath.Join(from, "bin/svc")) })
	t.Run("the image runs", func(t *testing.T) { readImage(t, release).runs(t) })
	t.Run("terraform takes the provider", func(t *testing.T) { takenByTerraform(t, release) })
	for _, suite := range []string{"bookworm", "trixie"} {
		t.Run(suite, func(t *testing.T) {
			d := install(t, suite)
			for version, folder := range map[string]string{before: filepath.Join(older, "dist"), now: release} {
				check.NoError(t, os.CopyFS(filepath.Join(d.root, version), os.DirFS(folder)))
			}
			d.life(t)
		})
	}
}

// elsewhere runs a script as on another machine, of somebody with other habits.
func elsewhere(t *testing.T, folder, script string, args ...string) {
	t.Helper()
	unshare := []string{"--uts"}
	if os.Getuid() != 0 {
		unshare = append(unshare, "--user", "--map-root-user")
	}
	c := exec.CommandContext(t.Context(), "unshare", append(append(unshare, "sh", "-euc", `
		hostname elsewhere
		umask 077
		chmod -R go= .
		`+script, "sh"), args...)...)
	c.Dir = folder
	home := t.TempDir()
	// Where the machine has no such locale, C's takes its place.
	run(t, home, `localedef --inputfile en_US --charmap UTF-8 ./en_US.UTF-8 || true`)
	c.Env = append(os.Environ(), "MAKEFLAGS=", "LOCPATH="+home, "LC_ALL=en_US.UTF-8", "TZ=Asia/Kathmandu", "HOME="+home,
		"GOAMD64=v2", "GOCACHE="+goEnv(t, "GOCACHE"), "GOMODCACHE="+goEnv(t, "GOMODCACHE"), "GOPROXY="+goEnv(t, "GOPROXY"))
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	return strings.TrimSpace(string(check.Must(exec.CommandContext(t.Context(), "go", "env", name).Output())(t)))
}

// signed finds a release signed that is a commit's, with its tag, and nothing else.
func signed(t *testing.T, archived string) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("GNUPGHOME", home)
	run(t, home, `chmod 700 . && gpg --batch --passphrase '' --quick-generate-key releases@example.com ed25519 sign 1d`)
	clone := repository(t, "v1.0.1")
	makes := func(folder, version, wrong string) {
		t.Helper()
		out, err := try(t, folder, `make packages DIST=signed KEY=releases@example.com VERSION="$1"`, version)
		if wrong != "" && (err == nil || !strings.Contains(out, wrong)) || wrong == "" && err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	makes(archived, "v1.0.1", "no clone")
	makes(clone, "v1.0.2", "not tagged v1.0.2")
	run(t, clone, `echo >> README.md`)
	makes(clone, "v1.0.1", "differ from commit")
	run(t, clone, `git checkout --quiet README.md && echo /signed/ >> .git/info/exclude &&
		mkdir signed && touch signed/pgherd_0.9.0-1_amd64.deb`)
	makes(clone, "v1.0.1", "")
	run(t, clone, `cd signed && gpg --verify SHA256SUMS.asc SHA256SUMS && sha256sum --check --strict SHA256SUMS && ! ls *0.9.0*`)
}

// refused finds that nothing is made, or deleted, of what cannot be meant.
func refused(t *testing.T, from string) {
	t.Helper()
	for _, args := range []string{"", "VERSION=1.0", "VERSION=v1.0.0 ARCH=vax"} {
		if out, err := try(t, from, "make packages "+args); err == nil || !strings.Contains(out, "packages: ") {
			t.Errorf("make packages %s: %v\n%s", args, err, out)
		}
	}
	none := sources(t)
	unpacked(t, none)
	if out, err := try(t, none, "make packages VERSION="+now); err == nil || !strings.Contains(out, "have no commit") {
		t.Errorf("%v\n%s", err, out)
	}
	folder := t.TempDir()
	for _, name := range []string{"letter.txt", ".hidden"} {
		mine := filepath.Join(folder, name)
		check.NoError(t, os.WriteFile(mine, nil, 0o644))
		out, err := try(t, from, `make packages VERSION="$1" DIST="$2"`, now, folder)
		if err == nil || !strings.Contains(out, name+" is no file of a release") {
			t.Errorf("%v\n%s", err, out)
		}
		check.NoError(t, os.Remove(mine))
	}
}

// saysWhich finds version and commit in a request of the client's.
func saysWhich(t *testing.T, svc string) {
	t.Helper()
	var program string
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		program = r.UserAgent()
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer service.Close()
	c := exec.CommandContext(t.Context(), svc, "databases", "list")
	c.Env = []string{"HOME=" + t.TempDir(), "SVC_BASE_URL=" + service.URL, "SVC_API_KEY=pgh_nobody"}
	out, err := c.CombinedOutput()
	if err == nil || program != "svc/"+now+" ("+commit+")" {
		t.Errorf("User-Agent is %q: %v\n%s", program, err, out)
	}
}

// takenByTerraform has Terraform find the provider of a release where docs/use/terraform.md says, and run it.
func takenByTerraform(t *testing.T, release string) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("CHECKPOINT_DISABLE", "1") // it asks nobody for newer versions
	const mirror = ".terraform.d/plugins/registry.terraform.io/pgherd/pgherd"
	if page := string(check.Must(os.ReadFile("../../docs/use/terraform.md"))(t)); !strings.Contains(page, "`~/"+mirror+"`") {
		t.Errorf("docs/use/terraform.md does not name ~/%s", mirror)
	}
	run(t, home, `mkdir -p "$1" work && cp "$2"/terraform-provider-pgherd_*.zip "$1"`, mirror, release)
	check.NoError(t, os.WriteFile(filepath.Join(home, "work/main.tf"), []byte(
		"terraform {\n  required_providers {\n    pgherd = { source = \"pgherd/pgherd\" }\n  }\n}\n"), 0o644))
	run(t, filepath.Join(home, "work"), `terraform init && terraform version | grep "pgherd/pgherd $1" &&
		terraform providers schema -json | grep pgherd_database`, now)
}
