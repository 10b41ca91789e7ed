"""Makes and drops Python objects of many kinds; run with PYTHONMALLOC=malloc. About 3 seconds; its
argument scales that, in percent."""
import json
import random
import sys


class Node:
    def __init__(self, key, parent):
        self.key, self.parent, self.children, self.seen = key, parent, [], {}


def tree(depth, parent=None):
    node = Node(f"node-{depth}-{random.random():.6f}", parent)
    if depth:
        node.children = [tree(depth - 1, node) for _ in range(3)]
    return node


def words(node):
    yield from node.key.split("-")
    for child in node.children:
        yield from words(child)


def turn(number):
    root = tree(7)
    count = {}
    for word in words(root):
        count[word] = count.get(word, 0) + 1
    text = json.dumps({word: [n, {"turn": number, "half": n / 2}] for word, n in count.items()})
    back = json.loads(text)
    rows = sorted((tuple(map(str, value)) + (key,) for key, value in back.items()), reverse=True)
    return len({"".join(row).upper() for row in rows})


random.seed(1)
print(sum(turn(i) for i in range(40 * int(sys.argv[1] if len(sys.argv) > 1 else 100) // 100)))
