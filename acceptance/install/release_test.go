//go:build linux && machines

package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// madeFrom is where a program has its version and its commit.
const madeFrom = "github.com/pgherd/pgherd/hosts/internal/version"

// pack makes the packages of a version as a release does, but that the programs are compiled as the tests are. They are in a
// folder of that name beside the sources.
func pack(t *testing.T, root, version string) {
	t.Helper()
	source, stage, out := filepath.Join(root, "source"), filepath.Join(root, "stage", version), filepath.Join(root, version)
	check.NoError(t, os.MkdirAll(out, 0o755))
	repository := check.Must(toolchain.Root())(t)
	build := func(folder string, environment []string, command string, args ...string) {
		t.Helper()
		run := exec.CommandContext(t.Context(), command, args...)
		run.Dir, run.Env = folder, append(os.Environ(), environment...)
		if text, err := run.CombinedOutput(); err != nil {
			t.Fatalf("%s %q: %v\n%s", command, args, err, text)
		}
	}
	stamp := "-w -X " + madeFrom + ".stampedVersion=" + version + " -X " + madeFrom + ".stampedCommit=0123456789abcdef"
	build(repository, nil, "go", "build", "-ldflags", stamp, "-o", filepath.Join(source, "bin")+"/", "./hosts/pgherd", "./hosts/svc")
	build(repository, nil, "go", "run", "./hosts/svc/manual", filepath.Join(source, "bin", "share"))
	build(repository, nil, "go", "run", "./hosts/pgherd/manual", filepath.Join(stage, "pgherd"))
	build(source, []string{
		"STAGE=" + stage, "VERSION=" + version, "ARCH=amd64", "MAINTAINER=test <test@example.com>", "SOURCE_DATE_EPOCH=1767225600",
		"MAKEFLAGS=",
	}, "hosts/pgherd/package/debs", out)
}

// publish puts the packages of a version into the folder where the operators are, in the place of others.
func publish(t *testing.T, root, version string) {
	t.Helper()
	source := filepath.Join(root, "source")
	for _, old := range check.Must(filepath.Glob(filepath.Join(source, "*.deb")))(t) {
		check.NoError(t, os.Remove(old))
	}
	for _, made := range check.Must(filepath.Glob(filepath.Join(root, version, "*.deb")))(t) {
		check.NoError(t, os.WriteFile(filepath.Join(source, filepath.Base(made)), check.Must(os.ReadFile(made))(t), 0o644))
	}
}

// copyPackaging makes of a folder with sources one that packages are made in.
func copyPackaging(t *testing.T, source string) {
	t.Helper()
	repository := check.Must(toolchain.Root())(t)
	for _, dir := range []string{"hosts/pgherd/package", "hosts/svc/package"} {
		check.NoError(t, os.CopyFS(filepath.Join(source, dir), os.DirFS(filepath.Join(repository, dir))))
	}
	for _, file := range []string{"LICENSE", "CHANGELOG.md"} {
		check.NoError(t, os.WriteFile(filepath.Join(source, file), check.Must(os.ReadFile(filepath.Join(repository, file)))(t), 0o644))
	}
	check.NoError(t, os.MkdirAll(filepath.Join(source, toolchain.Dir), 0o755))
	nfpm := filepath.Join(toolchain.Dir, "nfpm")
	check.NoError(t, os.Symlink(filepath.Join(repository, nfpm), filepath.Join(source, nfpm)))
}
