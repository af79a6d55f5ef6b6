# What `cmake --install` lays down: bin/tutti, lib/libtutti.so, the headers and the CMake package; for plugin authors the
# static libraries, tutti_add_plugin, the template, the card and bin/tutti-new-plugin, which copies them. Plugins install
# themselves (TuttiPlugin.cmake). The tree may be moved as a whole. Components: `runtime` (the library), `command`, `plugin_NAME`;
# the Python wheel holds these. The rest is for development. Each is a Debian package (TuttiPackages.cmake).
include(CMakePackageConfigHelpers)
set(headers "${CMAKE_INSTALL_INCLUDEDIR}/tutti")
set(package "${CMAKE_INSTALL_LIBDIR}/cmake/Tutti")

# Sources include from the repository's root ("core/base/shape.h"); so do programs, with include/tutti in the root's place.
foreach(part base geometry codegen kernels sdk)
  target_include_directories(tutti_${part} PUBLIC "$<INSTALL_INTERFACE:${headers}>")
  target_compile_features(tutti_${part} INTERFACE cxx_std_20)
  set_target_properties(tutti_${part} PROPERTIES EXPORT_NAME ${part})
endforeach()
target_compile_features(tutti INTERFACE cxx_std_20)
file(RELATIVE_PATH to_lib "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
set_target_properties(tutti_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${to_lib}")

install(TARGETS tutti_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT command)
install(TARGETS tutti_probe RUNTIME DESTINATION "${CMAKE_INSTALL_LIBDIR}/tutti" COMPONENT runtime)
install(TARGETS tutti tutti_base tutti_geometry tutti_codegen tutti_sdk EXPORT TuttiTargets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime NAMELINK_COMPONENT Unspecified
        RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT runtime
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(TARGETS tutti_kernels EXPORT TuttiKernelsTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
# Headers: all that tutti.h includes, and the SDK's. What else the engine has stays where it is.
file(GLOB_RECURSE sdk_headers RELATIVE "${PROJECT_SOURCE_DIR}" core/abi/*.h core/os/*.h core/base/*.h core/geometry/*.h sdk/*.h kernels/*.h)
set(engine_headers
    core/world/agree.h core/world/world.h core/runtime/device.h core/runtime/registry.h core/runtime/selector.h core/runtime/session.h data/dataset.h data/files/checkpoint.h data/files/npy.h
    data/host_tensor.h data/source.h data/text.h data/tokenizer.h graph/autodiff/autodiff.h graph/autodiff/custom_vjp.h graph/expr.h graph/functions.h graph/graph.h graph/lower/compile.h graph/lower/cost_estimate.h
    graph/lower/legalize.h graph/lower/lower.h graph/lower/split.h graph/op.h graph/op_options.h graph/ops.h graph/passes/exchange.h graph/passes/loss_parts.h graph/print.h
    nn/attention.h nn/image_transform.h nn/kv_cache.h nn/lora.h nn/mixup.h nn/module.h nn/modules.h nn/nets.h nn/normalise.h nn/norms.h nn/parameter_store.h nn/resnet.h nn/sequences.h nn/transformer.h train/task/model.h train/step/optimizer.h train/optimizers.h train/step/options.h train/run/exact_proof.h train/run/position.h train/step/precision.h train/run/profile.h
    train/step/programs.h train/run/fastest.h train/run/runner.h train/task/sampler.h train/step/schedule.h train/step/summary.h train/task/task.h train/task/tasks.h train/run/trainer.h train/step/update.h train/step/adam_update.h)
foreach(header IN LISTS sdk_headers engine_headers)
  get_filename_component(folder "${header}" DIRECTORY)
  install(FILES "${header}" DESTINATION "${headers}/${folder}")
endforeach()
install(DIRECTORY plugins/template plugins/card DESTINATION "${CMAKE_INSTALL_DATADIR}/tutti")
install(PROGRAMS scripts/new-plugin.sh DESTINATION "${CMAKE_INSTALL_BINDIR}" RENAME tutti-new-plugin)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/tutti/" DESTINATION "${headers}" FILES_MATCHING PATTERN "*.h")
install(DIRECTORY graph/ops DESTINATION "${headers}/graph" FILES_MATCHING PATTERN "*.h")
install(DIRECTORY graph/functions DESTINATION "${headers}/graph" FILES_MATCHING PATTERN "*.h")
install(DIRECTORY train/optimizers DESTINATION "${headers}/train" FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY docs/ DESTINATION "${CMAKE_INSTALL_DOCDIR}")

# The plugin in plain C: the one that a test holds to the recorded header, over the header that is installed.
foreach(file recorded.c recorded.json)
  file(READ "tests/abi/${file}" text)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/abi/${file}")
  string(REPLACE "tutti_plugin_v1.h" "core/abi/tutti_plugin.h" text "${text}")
  string(REPLACE "recorded header and nothing of Tutti" "installed header and nothing else of Tutti" text "${text}")
  string(REGEX REPLACE "(\"|_)recorded" "\\1plain" text "${text}")
  string(REPLACE "recorded" "plain" file "${file}")
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/plain_c/${file}" CONTENT "${text}" @ONLY)
endforeach()
install(DIRECTORY "${PROJECT_BINARY_DIR}/plain_c" DESTINATION "${CMAKE_INSTALL_DATADIR}/tutti")

# A oneDNN that scripts/deps.sh fetched goes along; one of the system stays where it is.
if(TARGET tutti_onednn AND "${dnnl_DIR}" MATCHES "^${PROJECT_SOURCE_DIR}/.deps/")
  set_target_properties(tutti_onednn PROPERTIES INSTALL_RPATH "$ORIGIN/..")
  install(FILES "$<TARGET_FILE:DNNL::dnnl>" DESTINATION "${CMAKE_INSTALL_LIBDIR}/tutti"
          RENAME "$<TARGET_SONAME_FILE_NAME:DNNL::dnnl>" COMPONENT plugin_onednn)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/.deps/onednn/share/doc/onednn" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc"
          COMPONENT plugin_onednn)
elseif(TARGET tutti_onednn)
  set_target_properties(tutti_onednn PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
endif()

configure_package_config_file(cmake/TuttiConfig.cmake.in "${PROJECT_BINARY_DIR}/TuttiConfig.cmake"
                              INSTALL_DESTINATION "${package}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/TuttiConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/TuttiConfig.cmake" "${PROJECT_BINARY_DIR}/TuttiConfigVersion.cmake"
              cmake/TuttiPlugin.cmake cmake/TuttiPlugin.map cmake/TuttiPlugin.def DESTINATION "${package}")
file(RELATIVE_PATH from_pc "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" from_pc "${from_pc}")
configure_file(cmake/tutti.pc.in "${PROJECT_BINARY_DIR}/tutti.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/tutti.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
install(EXPORT TuttiTargets NAMESPACE Tutti:: DESTINATION "${package}")
install(EXPORT TuttiKernelsTargets NAMESPACE Tutti:: DESTINATION "${package}")
