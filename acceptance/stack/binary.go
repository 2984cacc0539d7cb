package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

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

// Program is the program for all tests of a package, built when it is first asked for. A package says so once:
//
//	var program = stack.NewProgram(stack.CrashPoints)
//
//	func TestMain(m *testing.M) { os.Exit(program.Main(m)) }
type Program struct {
	dir  string
	path func() (string, error)
}

// NewProgram is a program with the given build tags.
func NewProgram(tags ...string) *Program {
	p := &Program{}
	p.path = sync.OnceValues(func() (string, error) {
		if p.dir == "" {
			return "", errors.New("stack: TestMain must call Program.Main")
		}
		return Build(context.Background(), p.dir, tags...)
	})
	return p
}

// Path is where the program stands, until Main returns.
func (p *Program) Path() (string, error) { return p.path() }

// Main runs the tests, then removes the program. It returns the exit status.
func (p *Program) Main(tests interface{ Run() int }) int {
	dir, err := os.MkdirTemp("", "pgherd-program-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "stack:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	p.dir = dir
	return tests.Run()
}
