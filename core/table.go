package core

// rangeTable holds the registrations of one device: disjoint ranges sorted by
// address, in an AVL tree whose links lie in the registrations, so that it
// allocates nothing and a lookup costs at most 1.44 log2(n) steps whatever the
// order of insertion. Protected by the device's mu.
type rangeTable struct {
	root *registration
	n    int
}

// links are the tree's part of a registration.
type links struct {
	left, right *registration
	height      int8 // of the subtree; 1: a leaf
}

// floor is the registration with the highest address <= addr; nil: none.
func (t *rangeTable) floor(addr DevAddr) *registration {
	var best *registration
	for r := t.root; r != nil; {
		if r.addr <= addr {
			best = r
			r = r.right
		} else {
			r = r.left
		}
	}
	return best
}

// overlapping is a registration that shares a byte with [addr, addr+lenBytes);
// nil: none. lenBytes > 0 and the sum does not overflow. Ranges are disjoint,
// so the one that starts last before the end is the only one to look at, and
// an exact duplicate cannot hide behind another.
func (t *rangeTable) overlapping(addr DevAddr, lenBytes uint64) *registration {
	r := t.floor(addr + DevAddr(lenBytes-1))
	if r != nil && uint64(r.addr)+(r.lenBytes-1) >= uint64(addr) {
		return r
	}
	return nil
}

// first is the registration with the lowest address; nil: none.
func (t *rangeTable) first() *registration {
	r := t.root
	for r != nil && r.left != nil {
		r = r.left
	}
	return r
}

// insert adds r, which overlaps none.
func (t *rangeTable) insert(r *registration) {
	r.links = links{height: 1}
	t.root = insertInto(t.root, r)
	t.n++
}

// remove takes out r, which is in the table.
func (t *rangeTable) remove(r *registration) {
	t.root = removeFrom(t.root, r)
	r.links = links{}
	t.n--
}

func insertInto(root, r *registration) *registration {
	if root == nil {
		return r
	}
	if r.addr < root.addr {
		root.left = insertInto(root.left, r)
	} else {
		root.right = insertInto(root.right, r)
	}
	return balance(root)
}

func removeFrom(root, r *registration) *registration {
	switch {
	case root == nil:
		panic("core: removing a registration that is not in its table")
	case r.addr < root.addr:
		root.left = removeFrom(root.left, r)
	case r.addr > root.addr:
		root.right = removeFrom(root.right, r)
	case root.left == nil:
		return root.right
	case root.right == nil:
		return root.left
	default:
		rest, next := removeFirst(root.right)
		next.left, next.right = root.left, rest
		return balance(next)
	}
	return balance(root)
}

// removeFirst takes the lowest registration out of a subtree and returns what
// is left of it, and that registration.
func removeFirst(root *registration) (rest, first *registration) {
	if root.left == nil {
		return root.right, root
	}
	root.left, first = removeFirst(root.left)
	return balance(root), first
}

func (r *registration) depth() int8 {
	if r == nil {
		return 0
	}
	return r.height
}

func (r *registration) measure() { r.height = max(r.left.depth(), r.right.depth()) + 1 }

// balance restores the invariant at root, whose subtrees hold it and differ in
// height by at most 2, and returns the new root.
func balance(root *registration) *registration {
	switch tilt := root.left.depth() - root.right.depth(); {
	case tilt > 1:
		if root.left.left.depth() < root.left.right.depth() {
			root.left = rotateLeft(root.left)
		}
		return rotateRight(root)
	case tilt < -1:
		if root.right.right.depth() < root.right.left.depth() {
			root.right = rotateRight(root.right)
		}
		return rotateLeft(root)
	}
	root.measure()
	return root
}

func rotateLeft(root *registration) *registration {
	up := root.right
	root.right, up.left = up.left, root
	root.measure()
	up.measure()
	return up
}

func rotateRight(root *registration) *registration {
	up := root.left
	root.left, up.right = up.right, root
	root.measure()
	up.measure()
	return up
}
