package copies

import (
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
)

// damagedError is what the reader of the stored file finds wrong with it. No other error says that the file is damaged:
// PostgreSQL's connection breaks off with io.ErrUnexpectedEOF as a file does that was cut off.
type damagedError struct{ err error }

func (e *damagedError) Error() string { return fmt.Sprintf("the file is damaged: %v", e.err) }

// unzipped is the text of a stored file.
type unzipped struct{ zip *gzip.Reader }

func unzip(file io.Reader) (*unzipped, error) {
	zip, err := gzip.NewReader(file)
	if errors.Is(err, io.EOF) { // not even a header
		err = io.ErrUnexpectedEOF
	}
	return &unzipped{zip}, damage(err)
}

func (u *unzipped) Read(p []byte) (int, error) {
	n, err := u.zip.Read(p)
	return n, damage(err)
}

// damage marks an error of the unzipping. Others, as of the disk, stay as they are.
func damage(err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader), errors.Is(err, io.ErrUnexpectedEOF),
		errors.As(err, &corrupt):
		return &damagedError{err}
	}
	return err
}
