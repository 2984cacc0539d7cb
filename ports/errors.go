package ports

import "errors"

// ErrNoRow says that a look-up found nothing. Use cases turn it into the code of their resource.
var ErrNoRow = errors.New("no such row")

// ErrLeaseLost says that a worker's lease is over: another worker has claimed the operation, or it is final. Nothing was
// written.
var ErrLeaseLost = errors.New("the lease on the operation is lost")

// ErrReadOnly says that a View tried to write.
var ErrReadOnly = errors.New("a view cannot write")
