package stack

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/pgherd/pgherd/hosts/toolchain"
)

// CrashPoints is the build tag of a program that kills itself at the point that CrashAt names.
const CrashPoints = "crashpoints"

// Build compiles the program into a folder and returns its path.
func Build(ctx context.Context, dir string, tags ...string) (string, error) {
	root, err := toolchain.Root()
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "pgherd")
	args := []string{"build", "-o", binary}
	for _, tag := range tags {
		args = append(args, "-tags", tag)
	}
	build := exec.CommandContext(ctx, "go", append(args, "./hosts/pgherd")...)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build pgherd: %w\n%s", err, out)
	}
	return binary, nil
}
