package artifact

import (
	"errors"

	"github.com/klauspost/compress/flate"
)

// damaged reports whether the error is that of a broken deflate stream.
func damaged(err error) bool {
	var corrupt flate.CorruptInputError
	return errors.As(err, &corrupt)
}
