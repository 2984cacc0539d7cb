package driver

import (
	"os/exec"
	"runtime"
	"syscall"
)

// startTied starts a program that dies with this process. Linux ties it to the thread that started it, so that thread is kept.
func startTied(cmd *exec.Cmd) (done chan struct{}, err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started, ended := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is of no interest
			close(ended)
		}
	}()
	return ended, <-started
}
