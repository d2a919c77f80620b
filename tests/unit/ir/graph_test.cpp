// Graph, Node, Value and Module: creation, names, mutation, users, cloning, lookup.
#include "ir_test_util.h"

namespace cgc::ir {
namespace {

std::vector<std::string> names(const Graph &graph) {
  std::vector<std::string> names;
  for (const Node &node : graph)
    for (const Value &result : node.results())
      names.push_back(result.name());
  return names;
}

const Loc kLoc{"model.py", 3, "visual"};

TEST(Graph, ResultNamesAreUnique) {
  Graph graph("f");
  Value *x = graph.placeholder("x", Type(), kLoc)->result();
  graph.placeholder("x", Type(), kLoc);
  graph.call(OpKind::Relu, {x}, 1, kLoc);
  graph.call(OpKind::Relu, {x}, 1, kLoc, nullptr, "x");
  graph.call(OpKind::Chunk, {x, 2, 0}, 2, kLoc);
  EXPECT_THAT(names(graph), testing::ElementsAre("x", "x_1", "0", "x_2", "1", "2"));
}

TEST(Graph, FreeNumbersAreNotTaken) {
  auto module = parsed("graph @f(%x: dynamic) {\n  %0 = aten.relu(%x) : dynamic\n"
                       "  %7 = aten.relu(%0) : dynamic\n  output %7\n}");
  Graph &graph = *module->findGraph("f");
  for (int i = 0; i < 10; ++i)
    graph.call(OpKind::Relu, {graph.inputs()[0]}, 1, kLoc, graph.output());
  std::vector<std::string> all = names(graph);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
}

TEST(Graph, RenameKeepsNamesUniqueAndFreesTheOldOne) {
  Graph graph("f");
  Value *a = graph.placeholder("a", Type(), kLoc)->result();
  Value *b = graph.placeholder("b", Type(), kLoc)->result();
  graph.rename(b, "a");
  EXPECT_EQ(b->name(), "a_1");
  graph.rename(a, "b");
  EXPECT_EQ(a->name(), "b");
  graph.rename(a, "b");
  EXPECT_EQ(a->name(), "b");
}

TEST(Graph, NodesGoWhereTheyAreAskedTo) {
  Graph graph("f");
  Value *x = graph.placeholder("x", Type(), kLoc)->result();
  Node *second = graph.call(OpKind::Relu, {x}, 1, kLoc, nullptr, "second");
  graph.call(OpKind::Relu, {x}, 1, kLoc, second, "first");
  graph.getAttr("w", Type(), kLoc, second);
  graph.placeholder("late", Type(), kLoc);
  EXPECT_THAT(names(graph), testing::ElementsAre("x", "late", "first", "0", "second"));
  EXPECT_EQ(graph.inputs().size(), 2u);
  EXPECT_EQ(graph.output(), nullptr);
}

TEST(Graph, ReplaceAllUsesReachesListsAndOutputs) {
  auto module = parsed("graph @f(%a: f32[2], %b: f32[2]) {\n"
                       "  %0 = aten.cat([%a, %a]) : f32[4]\n"
                       "  %1 = aten.view(%0) {size=[%a, 2]} : dynamic\n"
                       "  output %a, [%1, [%a]]\n}");
  Graph &graph = *module->findGraph("f");
  graph.replaceAllUsesWith(graph.inputs()[0], graph.inputs()[1]);
  EXPECT_EQ(toString(graph), "graph @f(%a: f32[2], %b: f32[2]) -> (f32[2], dynamic) {\n"
                             "  %0 = aten.cat([%b, %b]) : f32[4]\n"
                             "  %1 = aten.view(%0) {size=[%b, 2]} : dynamic\n"
                             "  output %b, [%1, [%b]]\n}\n");
}

TEST(Graph, EraseFreesTheName) {
  Graph graph("f");
  Value *x = graph.placeholder("x", Type(), kLoc)->result();
  Node *relu = graph.call(OpKind::Relu, {x}, 1, kLoc, nullptr, "r");
  graph.erase(relu);
  EXPECT_EQ(graph.size(), 1u);
  EXPECT_EQ(graph.call(OpKind::Relu, {x}, 1, kLoc, nullptr, "r")->result()->name(), "r");
}

TEST(GraphDeathTest, ErasingAUsedNodeIsABug) {
  auto module = parsed("graph @f(%x: f32[2]) {\n  %0 = aten.relu(%x) : f32[2]\n  output %0\n}");
  Graph &graph = *module->findGraph("f");
  EXPECT_DEATH(graph.erase(&*std::next(graph.begin())), "erasing a node that has users");
}

TEST(Graph, CloneIsEqualAndIndependent) {
  auto module =
      parsed("graph @f(%x: f32[4] loc(\"m.py\":1)) -> (a: f32[2], b: dynamic) {\n"
             "  %2, %1 = aten.chunk(%x) {chunks=2} : f32[2], f32[2] loc(\"m.py\":2 \"v\")\n"
             "  %0 = aten.relu_(%2) : f32[2]\n"
             "  %3 = aten.fallback \"aten::f() -> Tensor\" ([%0, %1]) : dynamic\n"
             "  output %0, [%3]\n}");
  Graph &graph = *module->findGraph("f");
  std::string before = toString(graph);
  auto copy = graph.clone("f");
  EXPECT_EQ(toString(*copy), before);
  EXPECT_EQ(copy->owner(), module.get());
  for (const Node &node : *copy)
    node.forEachInput([&](Value *value) { EXPECT_EQ(value->node()->graph(), copy.get()); });
  copy->rename(copy->inputs()[0], "changed");
  copy->output()->setArgs({});
  EXPECT_EQ(toString(graph), before);
}

/// Returns the names of the nodes that use `value`, in the order of users(): that of the first
/// result, or "output".
std::vector<std::string> usersOf(const Value *value) {
  std::vector<std::string> names;
  for (const Node *user : value->users())
    names.push_back(user->numResults() ? user->result()->name() : "output");
  return names;
}

/// Expects what the arguments say of the users of each value, as the verifier counts them.
void expectUsersAreRight(const Graph &graph) {
  Diagnostics diagnostics;
  verify(graph, diagnostics);
  EXPECT_THAT(diagnostics.render(), testing::Not(testing::HasSubstr("lists other users")));
}

TEST(Users, AreInGraphOrderEachOnce) {
  auto module = parsed("graph @f(%x: f32[2], %unused: f32[2]) {\n"
                       "  %0 = aten.add(%x, %x) : f32[2]\n"
                       "  %1 = aten.cat([%0, %x]) : f32[4]\n"
                       "  output [%1]\n}");
  Graph &graph = *module->findGraph("f");
  auto result = [&](unsigned i) { return std::next(graph.begin(), i)->result(); };
  EXPECT_THAT(usersOf(result(0)), testing::ElementsAre("0", "1"));
  EXPECT_THAT(usersOf(result(1)), testing::IsEmpty());
  EXPECT_FALSE(result(1)->hasUsers());
  EXPECT_TRUE(result(2)->hasOneUser());
  EXPECT_THAT(usersOf(result(3)), testing::ElementsAre("output"));
}

TEST(Users, ANodeThatUsesAValueTwiceIsOneUserWithTwoUses) {
  Graph graph("f");
  Value *x = graph.placeholder("x", Type(), kLoc)->result();
  Value *y = graph.placeholder("y", Type(), kLoc)->result();
  Node *add = graph.call(OpKind::Add, {x, x, 1}, 1, kLoc);
  EXPECT_TRUE(x->hasOneUser());
  EXPECT_FALSE(x->hasOneUse());
  add->setArg("self", y);
  EXPECT_TRUE(x->hasOneUse()) << "the other use stays";
  add->setArg("other", y);
  EXPECT_FALSE(x->hasUsers());
  EXPECT_TRUE(y->hasOneUser());
  EXPECT_FALSE(y->hasOneUse());
}

TEST(Users, FollowEveryWayToChangeArguments) {
  Graph graph("f");
  Value *x = graph.placeholder("x", Type(), kLoc)->result();
  Value *y = graph.placeholder("y", Type(), kLoc)->result();
  Node *cat = graph.call(OpKind::Cat, {Arg(Arg::List{x, y, x}), 0}, 1, kLoc, nullptr, "cat");
  Node *neg = graph.call(OpKind::Neg, {x}, 1, kLoc, nullptr, "neg");
  Node *output = graph.createOutput({Arg(Arg::List{neg->result(), x}), cat->result()}, kLoc);
  EXPECT_THAT(usersOf(x), testing::ElementsAre("cat", "neg", "output"));

  Node *relu = graph.call(OpKind::Relu, {x}, 1, kLoc, cat, "relu");
  EXPECT_THAT(usersOf(x), testing::ElementsAre("relu", "cat", "neg", "output"))
      << "inserted before";
  cat->replaceUsesOf(x, relu->result());
  EXPECT_THAT(usersOf(x), testing::ElementsAre("relu", "neg", "output"));
  EXPECT_THAT(usersOf(y), testing::ElementsAre("cat"));
  graph.replaceUsesAfter(*neg, x, y);
  EXPECT_THAT(usersOf(x), testing::ElementsAre("relu", "neg"));
  EXPECT_THAT(usersOf(y), testing::ElementsAre("cat", "output"));
  graph.replaceAllUsesWith(y, relu->result());
  EXPECT_THAT(usersOf(y), testing::IsEmpty());
  EXPECT_THAT(usersOf(relu->result()), testing::ElementsAre("cat", "output"));
  output->setArgs({cat->result()});
  EXPECT_THAT(usersOf(relu->result()), testing::ElementsAre("cat"));
  EXPECT_THAT(usersOf(neg->result()), testing::IsEmpty());
  graph.erase(neg);
  EXPECT_THAT(usersOf(x), testing::ElementsAre("relu"));
  expectUsersAreRight(graph);
}

TEST(Users, StayInGraphOrderHoweverManyNodesAreInserted) {
  Graph graph("f");
  Value *x = graph.placeholder("x", Type(), kLoc)->result();
  Node *last = graph.call(OpKind::Neg, {x}, 1, kLoc);
  for (int i = 0; i < 200; ++i) { // Far more than halve the gap between two nodes once.
    Node *inserted = graph.call(OpKind::Neg, {x}, 1, kLoc, last);
    EXPECT_TRUE(inserted->isBefore(*last));
    if (i % 2)
      last = inserted;
  }
  std::vector<Node *> nodes;
  for (Node &node : graph)
    if (&node != x->node())
      nodes.push_back(&node);
  EXPECT_EQ(x->users(), llvm::ArrayRef(nodes));
}

TEST(Users, OfACloneAreOfTheClone) {
  auto module = parsed("graph @f(%x: f32[2]) {\n"
                       "  %0 = aten.add(%x, %x) : f32[2]\n"
                       "  output %0, [%x]\n}");
  Graph &graph = *module->findGraph("f");
  auto copy = graph.clone("g");
  expectUsersAreRight(*copy);
  EXPECT_THAT(usersOf(copy->inputs()[0]), testing::ElementsAre("0", "output"));
  copy->output()->setArgs({});
  EXPECT_THAT(usersOf(graph.inputs()[0]), testing::ElementsAre("0", "output"));
}

TEST(Module, PathsAndLookUp) {
  auto root = parsed(R"(
    module @clip class="CLIP" {
      param @scale : f32[]
      module @visual {
        module @0 {
          param @w : f32[2]
          graph @forward(%x: f32[2]) { output %x }
        }
      }
    })");
  Module *inner = root->findSubmodule("visual")->findSubmodule("0");
  EXPECT_EQ(root->path(), "");
  EXPECT_EQ(inner->path(), "visual.0");
  EXPECT_EQ(inner->parent()->parent(), root.get());
  EXPECT_EQ(root->findParameter("visual.0.w"), &inner->parameters()[0]);
  EXPECT_EQ(root->findParameter("scale")->type.rank(), 0);
  EXPECT_EQ(root->findParameter("visual.w"), nullptr);
  EXPECT_EQ(root->findParameter("nowhere.w"), nullptr);
  auto [module, method] = root->resolve("visual.0.forward");
  EXPECT_EQ(module, inner);
  EXPECT_EQ(method, "forward");
  EXPECT_EQ(root->resolve("visual.1.forward").first, nullptr);
  inner->removeGraph("forward");
  EXPECT_EQ(inner->findGraph("forward"), nullptr);
}

TEST(Module, ConstantsGetUniqueNames) {
  Module module("m", "");
  int64_t value = 7;
  auto data = TensorData::copyOf(TensorType::dense(DType::I64, {}),
                                 llvm::ArrayRef(reinterpret_cast<const std::byte *>(&value), 8));
  EXPECT_EQ(module.addConstant("c", data), "c");
  EXPECT_EQ(module.addConstant("c", data), "c_1");
  EXPECT_EQ(module.findParameter("c_1")->kind, Parameter::Kind::Constant);
  EXPECT_EQ(module.findParameter("c_1")->data->bytes().size(), 8u);
}

TEST(Loc, ForMessages) {
  EXPECT_EQ(toString(Loc{"a/b/transformer.py", 918, "visual.transformer"}),
            "transformer.py:918 (visual.transformer)");
  EXPECT_EQ(toString(Loc{"", 0, "visual"}), "(visual)");
  EXPECT_FALSE(Loc::unknown().isKnown());
}

} // namespace
} // namespace cgc::ir
