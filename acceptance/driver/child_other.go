//go:build !linux

package driver

import "os/exec"

// startTied starts a program. Here it does not die with this process.
func startTied(cmd *exec.Cmd) (done chan struct{}, err error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is of no interest
		close(ended)
	}()
	return ended, nil
}
