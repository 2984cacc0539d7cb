package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/pgherd/pgherd/hosts/toolchain"
)

// CrashPoints is the build tag of a program that kills itself at the point that CrashAt names.
const CrashPoints = "crashpoints"

// built are the programs that this process has asked for, by their folders.
var built = struct {
	sync.Mutex
	paths map[string]string
}{paths: map[string]string{}}

// Build compiles ./hosts/<name> with the given build tags and returns the program's path. All packages' tests share the file,
// below the folder of the tools: the Go tool links it again only where the source has changed.
func Build(ctx context.Context, name string, tags ...string) (string, error) {
	built.Lock()
	defer built.Unlock()
	folder := strings.Join(append([]string{name}, tags...), "-")
	if path := built.paths[folder]; path != "" {
		return path, nil
	}
	root, err := toolchain.Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, toolchain.Dir, "programs", folder, name)
	if err := BuildOf(ctx, root, path, tags...); err != nil {
		return "", fmt.Errorf("build %s: %w", name, err)
	}
	built.paths[folder] = path
	return path, nil
}

// BuildOf compiles a program of the source tree at root into the file path, whose last element is the program's name. Of several
// processes that ask for the same file, one at a time writes it.
func BuildOf(ctx context.Context, root, path string, tags ...string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "-tags", strings.Join(tags, ","), "./hosts/"+filepath.Base(path))
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return errors.Join(err, errors.New(string(out)))
	}
	return nil
}
