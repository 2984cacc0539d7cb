//go:build packages

package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

const module = "github.com/pgherd/pgherd"

// TestGoInstallsTheClient installs svc as somebody does who has Go and nothing else of pgherd's. Go fetches the module itself, by
// git, from a repository in the place of GitHub's: so it packs the files as it packs them for everybody. What it installs says
// the version that was asked for; that of a commit without a tag has the commit.
func TestGoInstallsTheClient(t *testing.T) {
	from := repository(t, now)
	later := strings.TrimSpace(run(t, from, `echo >> README.md && git commit --quiet --all --message later && git rev-parse HEAD`))
	config := filepath.Join(t.TempDir(), "gitconfig")
	check.NoError(t, os.WriteFile(config, []byte("[url \"file://"+from+"\"]\n\tinsteadOf = https://"+module+"\n"), 0o644))
	cache, proxy := t.TempDir(), "file://"+filepath.Join(goEnv(t, "GOMODCACHE"), "cache", "download")+","+goEnv(t, "GOPROXY")
	for asked, want := range map[string]string{now: " " + now + " go", later: "-" + later[:12] + " go"} {
		bin := t.TempDir()
		install := exec.CommandContext(t.Context(), "go", "install", module+"/hosts/svc@"+asked)
		install.Dir = bin
		install.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+config, "GOBIN="+bin, "GOMODCACHE="+cache, "GOFLAGS=-modcacherw",
			"GONOPROXY="+module, "GONOSUMDB="+module, "GOPROXY="+proxy)
		if out, err := install.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		out := check.Must(exec.CommandContext(t.Context(), filepath.Join(bin, "svc"), "--version").Output())(t)
		if !strings.Contains(string(out), want) {
			t.Errorf("%s: it says that it is %s", asked, out)
		}
	}
}
