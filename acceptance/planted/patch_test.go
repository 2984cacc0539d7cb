package planted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

// root is the repository.
const root = "../.."

// patch is a bug, as a file of testdata has it: a few lines about it, and a unified diff of the product's code.
type patch struct {
	name    string
	path    string   // of the patch
	breaks  string   // the promise
	in      string   // the package whose test finds the bug, as "go test" is told
	tests   string   // which one, as -run is told
	changed []string // files, from the root
}

var (
	aboutPattern = regexp.MustCompile(`^Breaks: (.+(?:\n  .+)*)\nFound by: (\./\S+) (\^Test\w+\$(?:/\S+)?)\n\n(?:---|diff --git) `)
	filePattern  = regexp.MustCompile(`(?m)^--- a/(\S+)\n\+\+\+ b/(\S+)$`)
	testPattern  = regexp.MustCompile(`^\^(Test\w+)\$`)
)

// patches are those of testdata, by name.
func patches(t *testing.T) (list []patch) {
	t.Helper()
	for _, path := range check.Must(filepath.Glob("testdata/*.patch"))(t) {
		text := check.Must(os.ReadFile(path))(t)
		about := aboutPattern.FindSubmatch(text)
		if about == nil {
			t.Fatalf("%s does not say what it breaks, and which test finds it", path)
		}
		p := patch{
			name: strings.TrimSuffix(filepath.Base(path), ".patch"), path: check.Must(filepath.Abs(path))(t),
			breaks: string(about[1]), in: string(about[2]), tests: string(about[3]),
		}
		for _, file := range filePattern.FindAllSubmatch(text, -1) {
			if !bytes.Equal(file[1], file[2]) {
				t.Fatalf("%s makes %s of %s: a bug changes files, and no more", path, file[2], file[1])
			}
			p.changed = append(p.changed, string(file[1]))
		}
		list = append(list, p)
	}
	return list
}

// takesLong reports whether the test needs servers, or the whole control plane to be compiled.
func (p patch) takesLong() bool {
	return !strings.HasPrefix(p.in, "./core/") || p.in == "./core/controlplane"
}

// apply writes the changed files, as the bug has them, below a folder. The source tree stays as it is.
func (p patch) apply(t *testing.T, folder string) {
	t.Helper()
	for _, file := range p.changed {
		to := filepath.Join(folder, file)
		check.NoError(t, os.MkdirAll(filepath.Dir(to), 0o700))
		check.NoError(t, os.WriteFile(to, check.Must(os.ReadFile(filepath.Join(root, file)))(t), 0o600))
	}
	git := exec.CommandContext(t.Context(), "git", "apply", p.path)
	git.Dir = folder
	git.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(folder)) // the folder may be in a repository
	if out, err := git.CombinedOutput(); err != nil {
		t.Fatalf("%s does not apply any more (%v): plant the bug anew in what the code is now, which broke this promise: %s\n%s",
			p.path, err, p.breaks, out)
	}
}

// overlay is a file for -overlay, by which the changed files are read in the place of the repository's.
func (p patch) overlay(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	p.apply(t, folder)
	replace := map[string]string{}
	for _, file := range p.changed {
		replace[check.Must(filepath.Abs(filepath.Join(root, file)))(t)] = filepath.Join(folder, file)
	}
	path := filepath.Join(folder, "overlay.json")
	text := check.Must(json.Marshal(map[string]any{"Replace": replace}))(t)
	check.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

// exists reports whether the package has the test.
func (p patch) exists(t *testing.T) bool {
	t.Helper()
	name := testPattern.FindStringSubmatch(p.tests)[1]
	for _, path := range check.Must(filepath.Glob(filepath.Join(root, p.in, "*_test.go")))(t) {
		if bytes.Contains(check.Must(os.ReadFile(path))(t), fmt.Appendf(nil, "\nfunc %s(", name)) {
			return true
		}
	}
	return false
}
