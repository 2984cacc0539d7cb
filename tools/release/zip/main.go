// Command zip packs programs and files as Terraform takes a provider. The same files and second make the same bytes.
//
//	zip -seconds 1767225600 -to terraform-provider-x_1.0.0_linux_amd64.zip terraform-provider-x_v1.0.0=bin/terraform-provider-x
package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	seconds := flag.Int64("seconds", 0, "the time of all files, in seconds of Unix time")
	to := flag.String("to", "", "the archive")
	flag.Parse()
	if err := write(*to, time.Unix(*seconds, 0).UTC(), flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "zip:", err)
		os.Exit(1)
	}
}

// write packs files, each NAME=FILE. What the owner may run, all may.
func write(to string, at time.Time, files []string) error {
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	for _, pair := range files {
		name, path, found := strings.Cut(pair, "=")
		if !found {
			return errors.New(pair + " is not NAME=FILE")
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		h := zip.FileHeader{Name: name, Method: zip.Deflate, Modified: at}
		h.SetMode(0o644)
		if info.Mode()&0o100 != 0 {
			h.SetMode(0o755)
		}
		w, err := archive.CreateHeader(&h)
		if err == nil {
			_, err = w.Write(content)
		}
		if err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return os.WriteFile(to, packed.Bytes(), 0o644)
}
